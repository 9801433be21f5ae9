"""The stages of retargeting, each a pure function over arrays of key points or joint angles."""
