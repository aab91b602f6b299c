#undef DEBUG  // The library is built without it, and the headers must agree.
#include "Watchdog.h"

#include <chrono>

#include <js/Interrupt.h>
#include <jsapi.h>
#include <poll.h>
#include <unistd.h>

#include "Frames.h"

namespace scripts {

static int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
    .count();
}

Watchdog::Watchdog(double seconds, double graceSeconds)
  : limit(int64_t(seconds * 1e9)), grace(int64_t(graceSeconds * 1e9)) {}

void Watchdog::engineStarted(JSContext* started) {
  std::lock_guard<std::mutex> hold(mutex);
  context = started;
}

void Watchdog::requestBegins(uint32_t number) {
  ticket = number;
  std::lock_guard<std::mutex> hold(mutex);
  busy = true;
  changed.notify_one();
}

void Watchdog::requestEnds() {
  std::lock_guard<std::mutex> hold(mutex);
  busy = false;
}

void Watchdog::callBegins(uint32_t number) {
  document.store(number, std::memory_order_relaxed);
  began.store(now(), std::memory_order_release);
}

bool Watchdog::callEnds() {
  int64_t start = began.exchange(0);
  if (start == taken) {
    // The program is about to end.
    for (;;) pause();
  }
  return expired.load() == start;
}

void Watchdog::run() {
  std::unique_lock<std::mutex> hold(mutex);
  for (;;) {
    while (!busy) changed.wait(hold);
    changed.wait_for(hold, std::chrono::milliseconds(20));
    if (!busy) continue;
    pollfd input{STDIN_FILENO, POLLRDHUP, 0};
    if (poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR | POLLRDHUP | POLLNVAL))) _exit(0);
    int64_t start = began.load(std::memory_order_acquire);
    if (start <= 0) continue;
    int64_t passed = now() - start;
    if (passed > limit + grace && began.compare_exchange_strong(start, taken)) {
      FrameWriter frame;
      frame.begin(Answer::failed, ticket);
      frame.u8(uint8_t(Failure::stopped));
      frame.u32(document);
      frame.text("The script took too long and didn't stop.");
      frame.send();
      _exit(3);
    }
    if (passed > limit && began.load() == start) {
      expired.store(start);
      if (context) JS_RequestInterruptCallback(context);
    }
  }
}

}  // namespace scripts
