"""What a fitted model hands to other systems: vectors, a search index, an ONNX network. Each is checked as it is made."""
