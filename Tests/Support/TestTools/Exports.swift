// What all tests use: `import TestTools` brings it.

@_exported import Expectations
@_exported import Foundation
@_exported import Storage
@_exported import Testing
