import Expectations
import TestTools
import Testing

@testable import StoragePostgres

struct LocationTests {
  @Test(arguments: [
    ("postgres://host/db#travel", "postgres://host/db", "travel", "postgres://host/db#travel"),
    (
      "postgresql://me:secret@host:5433/db#travel", "postgresql://me:secret@host:5433/db", "travel",
      "postgresql://me@host:5433/db#travel"
    ),
    (
      "postgres://me:se%23c@ret@host/db#a%20b", "postgres://me:se%23c@ret@host/db", "a b",
      "postgres://me@host/db#a%20b"
    ),
    ("postgres:///?service=travel#x", "postgres:///?service=travel", "x", "postgres:///?service=travel#x"),
    (
      "postgres://h/d?password=secret&sslmode=require#x", "postgres://h/d?password=secret&sslmode=require",
      "x", "postgres://h/d?sslmode=require#x"
    ),
    ("postgres://h/d?pass%77ord=secret#x", "postgres://h/d?pass%77ord=secret", "x", "postgres://h/d#x"),
    (
      "postgres://a,b/d?sslpassword=secret&target_session_attrs=read-write#x",
      "postgres://a,b/d?sslpassword=secret&target_session_attrs=read-write", "x",
      "postgres://a,b/d?target_session_attrs=read-write#x"
    ),
  ])
  func aLocationHasAConnectionStringAndASchema(
    _ text: String, _ connection: String, _ schema: String, _ shown: String
  ) throws {
    // libpq takes no password with an unescaped @.
    guard !text.contains("@ret@") else {
      expect(LocationText.withoutSecrets(text), equals: shown)
      return
    }
    let location = try PostgresLocation(text)
    expect(location.connection, equals: connection)
    expect(location.schema, equals: schema)
    expect(location.shown, equals: shown)
  }

  @Test(arguments: [
    "travel", "/tmp/travel.postgres", "postgres://host/db", "postgres://host/db#",
    "postgres://host/db#pg_catalog",
    "postgres://host/db#information_schema", "postgres://host/db#" + String(repeating: "x", count: 64),
    "postgres://host/db#%00", "postgres://host/db#%ZZ", "postgres://host/db?nonsense=1#x",
  ])
  func whatIsNoLocationIsRefused(_ text: String) throws {
    try expect(try storageCode { try PostgresLocation(text) } == .invalidArgument)
  }

  @Test(arguments: [
    "postgres://me:secret@host/db",
    "postgres://me:secret@host/db?a=b#x",
    "postgres://host/db?password=secret", "postgres://me:secret@[host/db#x",
    "postgres://me:secret@host/db#pg_x",
  ])
  func aRefusalRepeatsNoPassword(_ text: String) throws {
    let error = try thrown(StorageError.self) { try PostgresLocation(text) }
    expect(error != nil)
    expect(!"\(error.map(String.init(describing:)) ?? "")".contains("secret"))
  }

  @Test func namesOfSchemasAreQuoted() throws {
    try expect(try PostgresLocation("postgres://h/d#a%22b").quotedSchema, equals: "\"a\"\"b\"")
  }
}
