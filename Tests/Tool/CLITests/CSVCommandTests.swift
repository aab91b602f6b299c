import Datasets
import TestSupport

/// CSV in and out, and blobs inside lines.
@Suite struct CSVCommandTests {
  @Test(arguments: TestEngine.some) func whatIsExportedAsCSVComesBackTheSame(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      let lines = #"""
        {"_id":"a","s":"plain","n":1,"d":-0.5,"t":true,"z":null,"o":{"x":[1,"ö"]},"l":[],"e":""}
        {"_id":"b, \"c\"","s":"12","n":1e300,"tricky":"{\"a\":1}"}
        {"_id":"c","s":"true","tricky":"\"quoted\"","lines":"one\r\ntwo\n"}
        {"_id":"d","s":"{not json","tricky":"null","n":12345678901234567}
        {"_id":"e","s":"007","tricky":" 1"}
        {"_id":"f"}

        """#
      try tool.succeed("import", "db", "-", input: lines)
      for file in ["out.csv", "out.csv.gz"] {
        try expect(tool.succeed("export", "db", file).output, equals: "6 documents\n")
        try tool.succeed("import", file + "-db", file, "--engine", "lmdb")
        try expect(tool.succeed("export", file + "-db").output, equals: tool.succeed("export", "db").output)
      }
      let text = try tool.read("out.csv")
      expect(text.hasPrefix("_id,s,tricky,n,d,e,l,lines,o,t,z\r\n"), "\(text)")
      expect(text.contains("\r\n\"b, \"\"c\"\"\",\"12\",") && text.contains(",1e+300,"), "\(text)")
      expect(text.hasSuffix("\r\nf,,,,,,,,,,\r\n"), "\(text)")
    }
  }

  @Test func namesOfColumnsAreToldApartByTheirBytes() throws {
    try Tool.run { tool in
      try tool.succeed(
        "import", "db", "-", "--engine", "lmdb", input: #"{"_id":"a","":1,"\u00e9":2,"e\u0301":3}"# + "\n")
      try tool.succeed("export", "db", "out.csv")
      try tool.succeed("import", "new", "out.csv", "--engine", "lmdb")
      try expect(
        Array(tool.succeed("export", "new").output.utf8),
        equals: Array(tool.succeed("export", "db").output.utf8))
      try tool.write("a,\"\",\"\"\n1,2,3\n", to: "x.csv")
      try expect(tool("import", "db", "x.csv").errors.contains("line 1: two columns have the name ''"))
    }
  }

  @Test func rowsOfAQueryAsCSVComeBackTheSame() throws {
    try Tool.run { tool in
      let lines = #"""
        {"_id":"a","b":"12","c":12,"d":"true","e":"","f":"{\"x\":1}","g":{"x":1},"h":"null","i":null,"j":"a,\"b\""}

        """#
      try tool.succeed("import", "db", "-", "--engine", "lmdb", input: lines)
      let rows = try tool.succeed(
        "query", "db", "SELECT META().id AS _id, b, c, d, e, f, g, h, i, j, k FROM _", "--format", "csv")
      try tool.write(rows.output, to: "rows.csv")
      try tool.succeed("import", "new", "rows.csv", "--engine", "lmdb")
      try expect(tool.succeed("export", "new").output, equals: lines)
    }
  }

  @Test func fieldsAreNumbersIfJSONReadsThemAsNumbers() {
    for text in [
      "0", "-0", "7", "12", "-12", "0.5", "-0.25", "10.0", "1e3", "1E3", "1e+3", "1.5e-300", "0e0",
      "12345678901234567890", "true", "false", "null",
    ] {
      expect(CSVValue.json(CSVField(text)), equals: text)
      expect(CSVValue.json(CSVField(text, isQuoted: true)), equals: "\"\(text)\"")
      expect(CSVValue.field(ofString: text), equals: "\"\(text)\"")
    }
    for text in [
      "-", "+1", "007", "00", "-01", "1.", ".5", "-.5", "1e", "1e+", "e3", "1.e3", "1e3.5", "1 ", " 1", "1,5",
      "0x10", "1_000", "1e999", "-1e999", "NaN", "inf", "True", "١٢", "1\u{301}",
    ] {
      expect(CSVValue.json(CSVField(text)), equals: "\"\(text)\"")
      expect(CSVValue.json(CSVField(CSVValue.field(ofString: text))) == nil, equals: false)
    }
  }

  @Test func filesOfOthersAreReadOrRefusedWithTheirLine() throws {
    try Tool.run { tool in
      try tool.write("\u{FEFF}key;x,b\nk1,\"a\n\nb\"\n\n\"k2\",", to: "semi.csv")
      try tool.succeed("import", "db", "semi.csv", "--engine", "lmdb", "--id-property", "key;x")
      try expect(
        tool.succeed("export", "db").lines,
        equals: [#"{"_id":"k1","b":"a\n\nb"}"#, #"{"_id":"k2"}"#])
      for (text, reason) in [
        ("", "there is no header"), ("a,a\n", "line 1: two columns have the name 'a'"),
        ("a,\n", "line 1: column 2 has no name"),
        ("a,b\n1", "line 2: the record has 1 field, and the header has 2"),
        ("a\n1\n\"x\ny", "line 3: the quotes of a field that begins here have no end"),
        ("a\n\"x\"y", "line 2: there is text after the quotes"),
        ("a\nx\"y", "line 2: there are quotes inside"),
        ("a,_id\n1,_x", "line 2: "),
      ] {
        try tool.write(text, to: "x.csv")
        let result = try tool("import", "new", "x.csv", "--engine", "lmdb")
        expect(result.status == 2 && result.errors.contains("x.csv: "), "\(result.errors)")
        expect(result.errors.contains(reason), "\(result.errors)")
        // Nothing was imported, so the database isn't left behind.
        expect(!FileManager.default.fileExists(atPath: tool.path("new.touchstone")), "\(text)")
      }
      let random = try tool.succeed("import", "db", "semi.csv", "--id-property", "id")
      expect(random.errors.contains("no line has the property 'id', so all documents got random IDs"))
    }
  }

  @Test(arguments: TestEngine.some) func blobsInsideLinesComeBack(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed(
        "put", "db", "doc",
        #"{"_attachments":{"a.txt":{"data":"YWJj","content_type":"text/plain"}},"text":"\"digest\":\"sha1-x"}"#
      )
      let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
      try tool.succeed("put", "db", "blob", #"{"l":[{"@type":"blob","digest":"\#(digest)","length":3}]}"#)
      for options in [[], ["--metadata"]] {
        let lines = try tool.run(
          Tool.executable, ["export", "db", "--attachments", "inline"] + options)
        expect(lines.status == 0 && lines.errors == "", "\(lines.errors)")
        expect(lines.output.components(separatedBy: #""data":"YWJj""#).count, equals: 3, "\(lines.output)")
        let name = "copy\(options.count)"
        try tool.succeed("import", name, "-", "--engine", "lmdb", input: lines.output)
        try expect(tool.succeed("get", name, "doc", "--attachment", "a.txt").output, equals: "abc")
        try expect(tool.succeed("export", name).output, equals: tool.succeed("export", "db").output)
        try expect(tool.succeed("check", name, "--deep").faults, equals: [])
      }
      let wrong = try tool(
        "import", "db", "-", input: #"{"_id":"x","b":{"@type":"blob","digest":"\#(digest)","data":"YWJk"}}"#)
      expect(wrong.status == 2 && wrong.errors.contains("line 1: the data of the blob"), "\(wrong.errors)")
      try expect(tool("export", "db", "--attachments", "inline", "--blobs", "x").status, equals: 2)
    }
  }

  @Test func anObjectWithADigestAndDataOfItsOwnComesBack() throws {
    try Tool.run { tool in
      let sum = #"{"data":"not the blob","digest":"sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="}"#
      let line = #"{"_id":"a","sum":\#(sum)}"# + "\n"
      try tool.succeed("import", "db", "-", "--engine", "lmdb", input: line)
      try expect(tool.succeed("export", "db").output, equals: line)
      let attached = #"{"_id":"b","_attachments":{"x":\#(sum)}}"#
      let refused = try tool("import", "db", "-", input: attached + "\n")
      expect(refused.status == 2 && refused.errors.contains("isn't base64"), "\(refused.errors)")
    }
  }
}

/// `depth`, and the engine that import and sync make a database with.
@Suite struct NewDatabaseTests {
  @Test(arguments: TestEngine.some) func theDepthIsShownAndSet(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try expect(tool.succeed("depth", "db").output, equals: "20\n")
      try expect(tool.succeed("depth", "db", "3").output, equals: "3\n")
      try expect(tool.succeed("depth", "db", "--json").json()["depth"] as? Int, equals: 3)
      for number in 0..<5 { try tool.succeed("put", "db", "doc", #"{"n":\#(number)}"#) }
      let revisions =
        try tool.succeed("get", "db", "doc", "--json", "--history").json()["revisions"] as? [Any]
      expect(revisions?.count, equals: 3)
      for wrong in ["0", "-1", "x"] { try expect(tool("depth", "db", "--", wrong).status, equals: 2) }
      try expect(tool("depth", "db", "5", "--read-only").status, equals: 3)
    }
  }

  @Test func importAndSyncMakeTheDatabaseWhenToldAnEngine() throws {
    try Tool.run { tool in
      try tool.write(#"{"_id":"a"}"#, to: "lines")
      let without = try tool("import", "db", "lines")
      expect(without.status == 3 && without.errors.contains("add --engine ENGINE"), "\(without.errors)")
      try tool.succeed("import", "db", "lines", "--engine", "lmdb")
      try tool.succeed("import", "db", "lines", "--engine", "lmdb")
      let other = try tool("import", "db", "lines", "--engine", "sqlite")
      expect(other.status == 2 && other.errors.contains("its engine is lmdb, not sqlite"), "\(other.errors)")
      try expect(tool("import", "secret", "lines", "--engine", "sqlcipher").status, equals: 2)
      try Data(0..<32).write(to: URL(filePath: tool.path("key")))
      try tool.succeed("import", "secret", "lines", "--engine", "sqlcipher", "--new-key-file", "key")
      let none = try tool("sync", "copy", "db")
      expect(none.status == 2 && none.errors.contains("or add --engine ENGINE"), "\(none.errors)")
      try tool.succeed("sync", "copy", "db", "--engine", "sqlite")
      try expect(tool.succeed("info", "copy", "--json").json()["engine"] as? String, equals: "sqlite")
      try expect(tool.succeed("get", "copy", "a").output, equals: "{}\n")
    }
  }
}
