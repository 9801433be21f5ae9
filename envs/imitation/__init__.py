"""Parts of motion imitation: each a small module of functions on arrays with any leading axes."""
