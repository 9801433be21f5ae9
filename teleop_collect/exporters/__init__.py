"""One file per format that demonstrations are exported to; the file's name is the format's."""
