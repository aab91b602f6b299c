// Stops a call that takes too long.
//
// At the deadline the engine is asked to interrupt its script. When the script doesn't return within a grace time
// after that, the program says so and ends. The program also ends when nobody is at the other end of its input
// while a script runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

struct JSContext;

namespace scripts {

class Watchdog {
 public:
  Watchdog(double seconds, double grace);

  // From the engine's thread.
  void engineStarted(JSContext* context);
  void requestBegins(uint32_t ticket);
  void requestEnds();
  // A call of a script begins, for a document or `noDocument`.
  void callBegins(uint32_t document);
  // Returns whether the call was asked to stop.
  bool callEnds();
  bool isPastDeadline() const { return expired.load() != 0 && expired.load() == began.load(); }

  // Runs on a thread of its own and never returns.
  [[noreturn]] void run();

 private:
  int64_t limit, grace;
  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false;
  JSContext* context = nullptr;
  std::atomic<uint32_t> ticket{0}, document{0};
  // When the current call began; 0 when none runs, and `taken` when the watchdog ends the program.
  static constexpr int64_t taken = -1;
  std::atomic<int64_t> began{0};
  // When the call began that was asked to stop.
  std::atomic<int64_t> expired{0};
};

}  // namespace scripts
