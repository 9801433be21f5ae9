"""What all sources share: contents of files without executing them, axes and units, the default skeleton."""
