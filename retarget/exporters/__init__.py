"""One file per format of robot motion; each binds `EXPORTER` (see `bunraku.retarget.export.MotionExporter`)."""
