// touchstone-scripts: runs the functions of design documents for a host process (docs/scripts.md).
//
//   touchstone-scripts --memory BYTES --seconds SECONDS --grace SECONDS
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include <pthread.h>
#include <unistd.h>

#include "Confinement.h"
#include "Engine.h"

namespace scripts {

struct Options {
  size_t memory = 512u << 20;
  double seconds = 5, grace = 1;
};

// Takes requests, one after the other, and answers them.
class Server {
 public:
  Server(Engine& engine, Watchdog& watchdog) : engine(engine), watchdog(watchdog) {
    engine.progress = [this](uint32_t document) { sayWorking(document); };
  }

  void run() {
    std::vector<uint8_t> frame;
    while (readFrame(frame)) {
      PayloadReader reader(frame.data(), frame.size());
      Request type = Request(reader.u8());
      ticket = reader.u32();
      began = lastSent = clock::now();
      watchdog.requestBegins(ticket);
      answer(type, reader);
      watchdog.requestEnds();
    }
  }

 private:
  using clock = std::chrono::steady_clock;

  void answer(Request type, PayloadReader& reader) {
    uint32_t number = reader.u32();
    if (type == Request::open) return open(number, reader);
    if (type == Request::close) {
      if (!reader.finished()) return fail(Failure::malformed, "The request is malformed.");
      engine.close(number);
      engine.collect();
      out.begin(Answer::closed, ticket);
      return out.send();
    }
    Design* design = engine.design(number);
    if (!reader.good() || type < Request::open || type > Request::mapAlone) {
      return fail(Failure::malformed, "The request is malformed.");
    }
    if (!design) return fail(Failure::missing, "There is no such design document.");
    switch (type) {
      case Request::map: return map(*design, reader, false);
      case Request::mapAlone: return map(*design, reader, true);
      case Request::reduce: return reduce(*design, reader);
      case Request::filter: return filter(*design, reader);
      default: return validate(*design, reader);
    }
  }

  void open(uint32_t number, PayloadReader& reader) {
    std::string_view json = reader.text();
    if (!reader.finished()) return fail(Failure::malformed, "The request is malformed.");
    Outcome outcome = engine.open(number, json);
    if (outcome.kind != Outcome::returned) return fail(outcome);
    Design& design = *engine.design(number);
    out.begin(Answer::opened, ticket);
    out.u8(design.hasValidation ? 1 : 0);
    out.u32(uint32_t(design.views.size()));
    for (auto& view : design.views) {
      out.text(view->name);
      out.u8(!view->builtIn.empty() ? 2 : view->reduce.isObject() ? 1 : 0);
      out.text(view->builtIn);
    }
    out.send();
  }

  // A request is answered in parts: after some bytes of rows, or some time, the rest of the documents is left.
  static constexpr size_t bytesOfPart = 8u << 20;
  static constexpr std::chrono::milliseconds timeOfPart{100};

  bool isPartLong() const { return clock::now() - began > timeOfPart; }

  void map(Design& design, PayloadReader& reader, bool isAlone) {
    std::vector<uint16_t> views(reader.u16());
    for (uint16_t& view : views) view = reader.u16();
    uint32_t count = reader.u32();
    bool known = reader.good(), isPart = false;
    for (uint16_t view : views) known = known && view < design.views.size();
    if (!known) return fail(Failure::malformed, "The request is malformed.");
    // Rows are sent while others are made.
    uint32_t first = 0;
    size_t sent = 0;
    FrameWriter rows;
    beginRows(rows, first);
    for (uint32_t index = 0; index < count; index++) {
      std::string_view json = reader.text();
      if (!reader.good()) return fail(Failure::malformed, "The request is malformed.", index);
      size_t before = rows.size();
      Outcome outcome = engine.map(design, views, index, json, isAlone, rows);
      if (outcome.kind != Outcome::returned) return fail(outcome, index);
      if (before > countAt + 4 && rows.size() > maximumLength / 2) {
        // Two large documents don't share a frame.
        std::string last = rows.bytes.substr(before);
        rows.bytes.resize(before);
        sent += before;
        sendRows(rows, index - first);
        first = index;
        beginRows(rows, first);
        rows.bytes.append(last);
      }
      if (rows.size() > maximumLength) {
        return fail(Failure::exception, "The rows of one document take too much memory.", index);
      }
      if (rows.size() >= (128u << 10)) {
        sent += rows.size();
        sendRows(rows, index + 1 - first);
        first = index + 1;
        beginRows(rows, first);
      }
      if (index + 1 < count && (sent > bytesOfPart || isPartLong())) {
        count = index + 1;
        isPart = true;
      }
    }
    if (!isPart && !reader.finished()) return fail(Failure::malformed, "The request is malformed.");
    if (first < count) sendRows(rows, count - first);
    out.begin(Answer::mapped, ticket);
    out.u32(count);
    out.send();
  }

  static constexpr size_t countAt = 13;

  void beginRows(FrameWriter& rows, uint32_t first) {
    rows.begin(Answer::rows, ticket);
    rows.u32(first);
    rows.u32(0);
  }

  void sendRows(FrameWriter& rows, uint32_t count) {
    rows.setU32(countAt, count);
    rows.send();
    lastSent = clock::now();
  }

  void reduce(Design& design, PayloadReader& reader) {
    uint16_t view = reader.u16();
    bool rereduce = reader.u8() != 0;
    std::string_view keys = reader.text(), values = reader.text();
    if (!reader.finished() || view >= design.views.size()) {
      return fail(Failure::malformed, "The request is malformed.");
    }
    if (!design.views[view]->reduce.isObject()) {
      return fail(Failure::missing, "The view has no reduce function in JavaScript.");
    }
    std::string json;
    Outcome outcome = engine.reduce(design, view, rereduce, keys, values, json);
    if (outcome.kind != Outcome::returned) return fail(outcome);
    if (json.size() > Engine::maximumRowBytes) return fail(Failure::exception, "The value takes more than 64 MiB.");
    out.begin(Answer::value, ticket);
    out.text(json);
    engine.writeLog(out);
    out.send();
  }

  void filter(Design& design, PayloadReader& reader) {
    bool isView = reader.u8() != 0;
    std::string_view name = reader.text(), request = reader.text();
    uint32_t count = reader.u32();
    if (!reader.good()) return fail(Failure::malformed, "The request is malformed.");
    JS::RootedValue function(engine.context);
    Outcome outcome = engine.findFilter(design, name, isView, &function);
    if (outcome.kind != Outcome::returned) return fail(outcome);
    std::string choices;
    bool isPart = false;
    for (uint32_t index = 0; index < count; index++) {
      std::string_view json = reader.text();
      if (!reader.good()) return fail(Failure::malformed, "The request is malformed.", index);
      bool chosen = false;
      outcome = engine.filter(design, function, isView, index, json, request, chosen);
      if (outcome.kind != Outcome::returned) return fail(outcome, index);
      choices.push_back(chosen ? 1 : 0);
      sayWorking(index);
      if (index + 1 < count && isPartLong()) {
        count = index + 1;
        isPart = true;
      }
    }
    if (!isPart && !reader.finished()) return fail(Failure::malformed, "The request is malformed.");
    out.begin(Answer::selected, ticket);
    out.text(choices);
    out.send();
  }

  void validate(Design& design, PayloadReader& reader) {
    std::string_view document = reader.text(), old = reader.text(), user = reader.text(), security = reader.text();
    if (!reader.finished()) return fail(Failure::malformed, "The request is malformed.");
    Outcome outcome = engine.validate(design, document, old, user, security);
    bool refused = outcome.kind == Outcome::forbidden || outcome.kind == Outcome::unauthorized;
    if (outcome.kind != Outcome::returned && !refused) return fail(outcome);
    out.begin(Answer::verdict, ticket);
    out.u8(outcome.kind == Outcome::forbidden ? 1 : outcome.kind == Outcome::unauthorized ? 2 : 0);
    out.shortText(outcome.text, Engine::maximumTextBytes);
    engine.writeLog(out);
    out.send();
  }

  // The host hears something at least once a second while documents are worked through.
  void sayWorking(uint32_t document) {
    if (!isLate()) return;
    out.begin(Answer::working, ticket);
    out.u32(document);
    out.send();
    lastSent = clock::now();
  }

  bool isLate() { return clock::now() - lastSent > std::chrono::milliseconds(500); }

  void fail(const Outcome& outcome, uint32_t document = noDocument) {
    if (outcome.kind == Outcome::memory) {
      // A design document's functions may keep what they took. So others don't go without.
      fail(Failure::memory, outcome.text, document);
      _exit(7);
    }
    fail(outcome.kind == Outcome::stopped ? Failure::stopped : outcome.failure, outcome.text, document);
  }

  void fail(Failure failure, std::string_view text, uint32_t document = noDocument) {
    out.begin(Answer::failed, ticket);
    out.u8(uint8_t(failure));
    out.u32(document);
    out.shortText(text, Engine::maximumTextBytes);
    out.send();
  }

  Engine& engine;
  Watchdog& watchdog;
  FrameWriter out;
  uint32_t ticket = 0;
  clock::time_point began, lastSent;
};

static Options options;
static Watchdog* watchdog;

static void* runEngine(void*) {
  Engine* engine = new Engine(*watchdog, options.memory - options.memory / 4);
  if (!engine->start()) _exit(5);
  bool filters = false;
  if (!confine(options.memory, &filters)) _exit(6);
  FrameWriter hello;
  hello.begin(Answer::hello, 0);
  hello.u32(0x534A5354);  // "TSJS"
  hello.u16(protocolVersion);
  hello.u8(filters);
  hello.text(JS_GetImplementationVersion());
  hello.send();
  try {
    Server(*engine, *watchdog).run();
  } catch (const std::bad_alloc&) {
    _exit(7);
  }
  // The kernel frees what the engine holds.
  _exit(0);
}

}  // namespace scripts

int main(int count, char** arguments) {
  using namespace scripts;
  for (int index = 1; index + 1 < count; index += 2) {
    double value = strtod(arguments[index + 1], nullptr);
    if (!(value > 0 && value < 1e15)) return 64;
    if (!strcmp(arguments[index], "--memory")) {
      options.memory = size_t(value);
    } else if (!strcmp(arguments[index], "--seconds")) {
      options.seconds = value;
    } else if (!strcmp(arguments[index], "--grace")) {
      options.grace = value;
    } else {
      return 64;
    }
  }
  if (count % 2 == 0 || options.memory < (16u << 20) || options.seconds > 1e6 || options.grace > 1e6) return 64;
  dropInheritance();
  watchdog = new Watchdog(options.seconds, options.grace);
  pthread_t engine;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, 4u << 20) != 0 ||
      pthread_create(&engine, &attributes, runEngine, nullptr) != 0) {
    return 71;
  }
  watchdog->run();
}
