// What most tests use: `import TestSupport` brings it.

@_exported import Expectations
@_exported import Fleece
@_exported import Foundation
@_exported import Storage
@_exported import Testing
@_exported import Touchstone
