// A command that keeps notes.
//
//   notes add TEXT…      saves a note and prints its ID
//   notes list           prints all notes, newest first
//   notes find WORDS…    prints the notes with these words, best first
//   notes remove ID      deletes a note

import Foundation
import Touchstone

struct UsageError: Error {}

func run(_ arguments: [String]) throws {
  guard let command = arguments.first else { throw UsageError() }
  let text = arguments.dropFirst().joined(separator: " ")
  let notes = try Database.open("notes")
  defer { try? notes.close() }
  try notes.createFullTextIndex("words", on: ["text"])
  switch command {
  case "add":
    let id = UUID().uuidString
    let now = Int64(Date().timeIntervalSince1970 * 1_000)
    try notes.save(id, ["text": .string(text), "created": .int(now)])
    print(id)
  case "list":
    let all = try notes.query("SELECT META().id AS id, text FROM _ ORDER BY created DESC")
    for row in try all.run() { print(row["id"].string ?? "", row["text"].string ?? "") }
  case "find":
    let found = try notes.query(
      "SELECT META().id AS id, text FROM _ WHERE MATCH(words, $words) ORDER BY RANK(words) DESC")
    for row in try found.run(["words": .string(text)]) {
      print(row["id"].string ?? "", row["text"].string ?? "")
    }
  case "remove": try notes.delete(text)
  default: throw UsageError()
  }
}

do { try run(Array(CommandLine.arguments.dropFirst())) } catch is UsageError {
  print("usage: notes add TEXT… | list | find WORDS… | remove ID")
  exit(2)
} catch {
  print("notes: \(error)")
  exit(1)
}
