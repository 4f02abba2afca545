"""other.py - needs more than Python."""
import numpy
from yaml import load
