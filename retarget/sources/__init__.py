"""One file per source of human motion; each binds `SOURCE` (see `bunraku.retarget.load.MotionSource`)."""
