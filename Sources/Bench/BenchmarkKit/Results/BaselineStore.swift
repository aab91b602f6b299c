import FoundationEssentials
import System

#if canImport(Glibc)
  import Glibc
#endif

/// A directory of results to compare with, by machine and name: `DIR/MACHINE/NAME.json`.
///
/// Results of different machines can't be compared, so each has a directory of its own. It is named for the processor, the number
/// of cores, the operating system and the file system. A name is often that of a branch.
package struct BaselineStore: Sendable {
  /// The directory of the machine.
  package let directory: String

  /// The store in a directory, which need not exist, for a machine.
  package init(_ directory: String, machine: Machine) {
    self.directory = "\(directory)/\(Self.directoryName(of: machine))"
  }

  /// Where the results with a name are, or would be.
  package func path(of name: String) -> String { "\(directory)/\(Self.fileName(of: name)).json" }

  /// Whether there are results with a name.
  package func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(of: name)) }

  /// The names that the machine has, sorted.
  package func names() throws -> [String] {
    guard FileManager.default.fileExists(atPath: directory) else { return [] }
    return try FileTree.names(in: directory).filter { $0.hasSuffix(".json") }
      .compactMap { URLComponents(string: String($0.dropLast(5)))?.path }.sorted()
  }

  /// Makes the directory of the machine if it is missing. Throws an error with the path unless files can be written there.
  package func prepare() throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    guard access(directory, W_OK | X_OK) == 0 else {
      throw StorageError.system(errno, "can't save baselines", directory)
    }
  }

  /// Saves results, in place of older ones with that name.
  package func save(_ results: ResultsFile, as name: String) throws {
    try prepare()
    try AtomicFile.write(results.encoded(), to: path(of: name), permissions: 0o644)
  }

  /// Letters and digits of the description, joined by dashes: `amd-epyc-7763-2-cores-debian-gnu-linux-12-bookworm-ext4`.
  static func directoryName(of machine: Machine) -> String {
    // Without the kernel, which an update changes.
    let system = machine.os.split(separator: ",").first ?? ""
    let text = "\(machine.cpu) \(machine.cores) cores \(system) \(machine.filesystem)".lowercased()
    return text.split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }.joined(separator: "-")
  }

  /// Other bytes than letters, digits, `-` and `_` are percent-encoded, so that any name is one file.
  static func fileName(of name: String) -> String {
    let digits = Array("0123456789ABCDEF")
    return name.utf8.reduce(into: "") { result, byte in
      let scalar = Unicode.Scalar(byte)
      if scalar.isASCII, scalar.properties.isAlphabetic || "0123456789-_".unicodeScalars.contains(scalar) {
        result.unicodeScalars.append(scalar)
      } else {
        result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
      }
    }
  }
}
