"""From human motion to robot motion: `Retargeter` turns key points of a person into joint angles of a humanoid."""
