// A command of the child process for the tests of Fleece.
//
//   fleece exit   parses JSON, and parses it again with another parser after all static objects of C++ are destroyed; prints "parsed"
//                 each time

import ChildSupport
import Fleece

#if canImport(Glibc)
  import Glibc
#endif

enum FleeceCommands: ChildCommands {
  static let name = "fleece"
  static let usage = "exit"

  static func run(_ arguments: [String]) throws {
    guard arguments == ["exit"] else { throw WrongUsage() }
    // What is registered first runs last. Objects are registered when they are first used.
    atexit { FleeceCommands.parse() }
    parse()
    exit(0)
  }

  private static func parse() {
    do { say(try JSONValue(json: "[1]") == [1] ? "parsed" : "wrong") } catch { say("\(error)") }
  }
}
