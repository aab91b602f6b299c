import StorageConformance

/// What the libraries' own tools say of a file, by the name of its engine.
func fileTools(_ engine: String, _ path: String, _ key: [UInt8]?) -> [FileTool] {
  switch engine {
  case "sqlite", "strict(sqlite)":
    [FileTool(["sqlite3", path, "PRAGMA integrity_check"], output: "ok")]
  case "sqlcipher-plain", "strict(sqlcipher-plain)":
    [FileTool(["sqlcipher", path, "PRAGMA integrity_check"], output: "ok")]
  case "sqlcipher", "strict(sqlcipher)":
    [
      FileTool(
        [
          "sqlcipher", path,
          """
          PRAGMA key = "x'\(hexadecimal(key ?? []))'"; PRAGMA cipher_page_size = 4096;
          PRAGMA integrity_check;
          """,
        ], output: "ok")
    ]
  case "rocksdb", "wiredtiger", "postgres", "strict(postgres)": []
  default:
    [FileTool(["mdb_stat", "-n", "-a", "-e", "-f", path]), FileTool(["mdb_dump", "-n", "-a", path])]
  }
}
