import CCurl
import System
import Transport
import WebSocket

/// Runs transfers of libcurl on one thread, which is there while there are any. Connections stay open between them.
final class CurlLoop: @unchecked Sendable {
  enum Command: Sendable {
    case add(CurlTransfer)
    case resume(CurlTransfer)
    case cancel(CurlTransfer)
  }

  private struct State {
    var commands: [Command] = []
    var isRunning = false
    var sentBytes: UInt64 = 0
    var receivedBytes: UInt64 = 0
    var requests: UInt64 = 0
  }

  private let multi: UnsafeMutableRawPointer
  private let state = Lock(State())
  private let workers = Workers()
  // Used on the loop's thread only.
  private var transfers: [UnsafeMutableRawPointer: CurlTransfer] = [:]

  init(maximumConnections: Int) throws(TransportClose) {
    guard CurlHandle.isReady, let multi = curl_multi_init() else {
      throw .network(.unknown, "libcurl has failed to start")
    }
    self.multi = multi
    ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, maximumConnections)
    ccurl_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, maximumConnections)
  }

  deinit { curl_multi_cleanup(multi) }

  /// What all ended transfers have sent and received.
  var traffic: (sent: UInt64, received: UInt64, requests: UInt64) {
    state.withLock { ($0.sentBytes, $0.receivedBytes, $0.requests) }
  }

  func post(_ command: Command) {
    let isFirst = state.withLock { state in
      state.commands.append(command)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if isFirst { workers.enqueue { [self] in run() } } else { curl_multi_wakeup(multi) }
  }

  // MARK: The thread

  private func run() {
    while true {
      let commands = state.withLock { state in
        defer { state.commands = [] }
        if state.commands.isEmpty, transfers.isEmpty { state.isRunning = false }
        return state.commands
      }
      if commands.isEmpty, transfers.isEmpty { return }
      for command in commands { handle(command) }
      var running: CInt = 0
      curl_multi_perform(multi, &running)
      takeMessages()
      endIdle()
      guard !transfers.isEmpty else { continue }
      curl_multi_poll(multi, nil, 0, 1000, nil)
    }
  }

  private func handle(_ command: Command) {
    workers.assertCurrent("a loop of transfers")
    switch command {
    case .add(let transfer):
      transfers[transfer.curl] = transfer
      if curl_multi_add_handle(multi, transfer.curl) != CURLM_OK {
        transfers[transfer.curl] = nil
        transfer.end(CURLE_FAILED_INIT, .network(.unknown, "libcurl doesn't take a request"))
      }
    case .resume(let transfer): if transfers[transfer.curl] != nil { transfer.resume() }
    case .cancel(let transfer): remove(transfer, CURLE_OK, .cancelled)
    }
  }

  private func takeMessages() {
    var left: CInt = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let curl = message.pointee.easy_handle else { continue }
      let code = ccurl_result(message)
      if let transfer = transfers[curl] { remove(transfer, code, nil) }
    }
  }

  private func endIdle() {
    let now = MonotonicTime.now
    for transfer in transfers.values where transfer.isIdle(now) {
      remove(transfer, CURLE_OK, CurlTransfer.idle)
    }
  }

  private func remove(_ transfer: CurlTransfer, _ code: CURLcode, _ reason: TransportClose?) {
    workers.assertCurrent("a loop of transfers")
    guard transfers.removeValue(forKey: transfer.curl) != nil else { return }
    curl_multi_remove_handle(multi, transfer.curl)
    transfer.end(code, reason)
    state.withLock { state in
      state.sentBytes += transfer.sentBytes
      state.receivedBytes += transfer.receivedBytes
      state.requests += 1
    }
  }
}
