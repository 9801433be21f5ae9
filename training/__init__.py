"""From demonstrations or rewards to a policy that is measured. Needs the extra `train`."""
