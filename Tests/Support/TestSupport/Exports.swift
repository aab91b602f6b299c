// What tests with databases use: `import TestSupport` brings it, and what TestTools has.

@_exported import Fleece
@_exported import TestTools
@_exported import Touchstone
