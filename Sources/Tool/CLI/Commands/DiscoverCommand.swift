import Fleece
import Storage
import TouchstoneSync

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone sync --discover`: lists the listeners in the local network.
struct DiscoverCommand: Subcommand {
  private static let type = Option(
    "type", "TYPE", "The type of services to look for. Default: \(ListenerBrowser.defaultType)")
  private static let seconds = Option("seconds", "N", in: 1...3_600, "How long to look. Default: 3")

  static let usage = Usage(
    "sync --discover", "Lists the servers in the local network that announce themselves",
    options: [type, seconds, DatabaseArguments.json],
    examples: ["touchstone sync --discover", "touchstone sync --discover --seconds 10 --json"],
    notes: """
      They are found by DNS-SD (Bonjour), which Avahi's daemon speaks. Those are listed that 'touchstone serve
      --announce NAME' and apps announce. The names are what anybody in the network claims. The status is 1 if there
      is none. With --json, each line is an object: name, url, host, address, port, tls, attributes.
      """)

  private let type: String
  private let seconds: Int
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    type = try arguments.value(Self.type) ?? ListenerBrowser.defaultType
    seconds = try arguments.value(Self.seconds) ?? 3
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let browser: ListenerBrowser
    do { browser = try ListenerBrowser(type: type) } catch let error as ReplicationError {
      throw UsageError("--type: \(error.message)")
    }
    guard ListenerBrowser.isAvailable else {
      throw Refusal("no server was found: Avahi's client library isn't installed here")
    }
    var left = seconds * 10
    while left > 0, !Interrupt.isRequested {
      usleep(100_000)
      left -= 1
    }
    let listeners = browser.listeners
    guard !listeners.isEmpty else {
      throw Refusal("no server was found; is Avahi's daemon running here and there?")
    }
    var table = TextTable(["NAME", "URL", "HOST"])
    for listener in listeners {
      let url = String(listener.url(of: "").dropFirst(2))
      if asJSON {
        var attributes = JSONObject()
        for (name, value) in listener.attributes.sorted(by: { $0.key < $1.key }) {
          attributes[name] = .string(value)
        }
        let object: JSONObjectText = [
          "name": listener.name, "url": "http" + url, "host": listener.host, "address": listener.address,
          "port": listener.port, "tls": listener.usesTLS,
          "attributes": JSONLiteral(jsonText: JSONValue.object(attributes).description),
        ]
        try output.line(object.jsonText)
      } else {
        table.add(listener.name.printable, ("http" + url).printable, listener.host.printable)
      }
    }
    if !asJSON { for line in table.lines { try output.line(line) } }
  }
}

extension String {
  /// Text of others for a terminal: without what a terminal would obey.
  var printable: String {
    var text = ""
    for scalar in unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: text += "\u{FFFD}"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}
