/// How a listener announces itself in the local network, by DNS-SD (also known as Bonjour). Avahi's daemon does that; where it
/// isn't, nothing is announced.
public struct SyncListenerAnnouncement: Sendable, Hashable {
  /// The type of services that listeners are announced as.
  public static let defaultType = "_touchstone._tcp"

  /// The name that people see, 1 to 63 bytes. If another listener in the network has it, a number is appended.
  public var name: String
  /// The type, of the form `_name._tcp`. Those who look for listeners find those of one type.
  public var type: String
  /// More that everybody in the network may know, at most 1,300 bytes. `tls` is added, `1` or `0`.
  public var attributes: [String: String]

  /// Creates an announcement.
  public init(name: String, type: String = Self.defaultType, attributes: [String: String] = [:]) {
    self.name = name
    self.type = type
    self.attributes = attributes
  }
}
