"""Inference with a fitted model: requests by external ids, histories of unseen users, and rankings."""
