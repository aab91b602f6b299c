#if canImport(Glibc)
  import Glibc
#endif

/// The program that this process runs.
package enum RunningProgram {
  /// The absolute path of its file, as the system knows it: without symbolic links. Nil if the system doesn't say.
  package static var path: String? {
    var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &path, path.count)
    return length > 0 ? String(decoding: path[..<length], as: UTF8.self) : nil
  }
}
