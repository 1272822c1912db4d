"""OfficeApps and OfficeAppsLarge: a user's apps, their APIs, and instructions to carry out.

One office in two forms. The compiled one (``OfficeApps``) has three apps on fixed-size columns of
numbers, so that thousands of episodes run in one program, and observations and masks are arrays.
The large one (``OfficeAppsLarge``) has nine apps on rows of words, of any number, in Python: a
compiled program would compute all of its 131 APIs in every step. What does not depend on that is
there once: words, arguments of tools, reward modes, pages. What does has both forms side by side, a
file an app, and all else that belongs together.
"""
