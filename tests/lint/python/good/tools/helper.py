"""helper.py - ours."""
