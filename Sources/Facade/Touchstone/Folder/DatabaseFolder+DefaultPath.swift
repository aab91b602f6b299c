import Storage

#if canImport(Darwin)
  import Foundation
#elseif canImport(Glibc)
  import Glibc
#endif

extension DatabaseFolder {
  /// The folder for the databases of this program, by the convention of the platform.
  ///
  /// On Linux it is the directory of the program's name in `$XDG_DATA_HOME`, if that is an absolute path, and
  /// in `~/.local/share` otherwise (the XDG Base Directory Specification). On Apple platforms it is the
  /// directory of the bundle's identifier in Application Support. The directory may not exist yet.
  ///
  /// Throws `noParentDirectory` if there is no home directory.
  public static var defaultPath: String {
    get throws {
      #if canImport(Darwin)
        let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
        guard let support else { throw noHome }
        return support.path + "/" + (Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName)
      #else
        guard
          let path = defaultPath(
            program: CommandLine.arguments.first, dataHome: EnvironmentVariable.value("XDG_DATA_HOME"),
            home: EnvironmentVariable.value("HOME") ?? homeOfUser)
        else { throw noHome }
        return path
      #endif
    }
  }

  private static var noHome: DatabaseError {
    DatabaseError(
      .noParentDirectory, "there is no home directory for the folder of databases; give the path of a folder")
  }

  /// The folder of a program; nil without a home directory.
  static func defaultPath(program: String?, dataHome: String?, home: String?) -> String? {
    func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }
    let slash = UInt8(ascii: "/")
    var name = (program?.utf8.split(separator: slash).last).map { String(decoding: $0, as: UTF8.self) } ?? ""
    // A name with a dot would be hidden, or another directory.
    if name.isEmpty || name.utf8.first == UInt8(ascii: ".") { name = "touchstone" }
    if let dataHome, isAbsolute(dataHome) { return joined(dataHome, name) }
    guard let home, isAbsolute(home) else { return nil }
    return joined(home, ".local/share/" + name)
  }

  /// The path of what has that name in a directory.
  static func joined(_ path: String, _ name: String) -> String {
    path.utf8.last == UInt8(ascii: "/") ? path + name : path + "/" + name
  }

  #if !canImport(Darwin)
    /// The home directory in the system's list of users.
    private static var homeOfUser: String? {
      var entry = passwd()
      var found: UnsafeMutablePointer<passwd>?
      return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
        guard let start = buffer.baseAddress,
          getpwuid_r(geteuid(), &entry, start, buffer.count, &found) == 0, found != nil,
          let home = entry.pw_dir
        else { return nil }
        return String(cString: home)
      }
    }
  #endif
}
