"""Systems under test that are programs of this repository; each runs in its own process."""
