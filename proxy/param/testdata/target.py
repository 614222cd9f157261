"""Prints the path of each target on its input, as urllib reads it."""
import sys
from urllib.parse import unquote, urlsplit

for target in sys.stdin:
    try:
        print(unquote(urlsplit(target.rstrip("\n")).path))
    except ValueError:
        print("!")
