"""The digits networks, their data, and the demo that compiles them: `lowerdeck demo`."""
