"""One file per format that demonstrations are imported from; the file's name is the format's."""
