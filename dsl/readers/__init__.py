"""Readers of numbers in files of strangers: the size of a content is known before it is unpacked, and unpacking stops at it."""
