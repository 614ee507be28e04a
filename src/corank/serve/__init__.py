"""The service: saved models behind HTTP, with feedback, swaps, an A/B split and a page (`corank serve`)."""
