"""The apps, a file each.

A file has the APIs of the compiled office on columns, then those of the large office on rows.
"""
