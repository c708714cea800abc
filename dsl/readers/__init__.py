"""Readers of numbers in untrusted files: the size of the content is known before it is unpacked, and unpacking stops at
it.
"""
