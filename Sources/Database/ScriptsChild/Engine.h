// SpiderMonkey: a context with a global for each design document, and the calls of their functions.
#undef DEBUG  // The library is built without it, and the headers must agree.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <js/AllocPolicy.h>
#include <js/GCVector.h>
#include <js/Promise.h>
#include <js/RootingAPI.h>
#include <jsapi.h>

#include "Frames.h"
#include "Watchdog.h"

namespace scripts {

// How a call of a script ended.
struct Outcome {
  enum Kind { returned, failed, stopped, memory, missing, forbidden, unauthorized } kind = returned;
  // Whether the request can't go on.
  bool ends() const { return kind == stopped || kind == memory; }
  std::string text;
  Failure failure = Failure::exception;
};

// The maps, reduce functions and modules of one design document, and the global they run in.
struct Design {
  struct View {
    explicit View(JSContext* context) : map(context), reduce(context) {}
    std::string name;
    JS::PersistentRootedValue map, reduce;
    // The reduce function's name when it is built in.
    std::string builtIn;
  };
  explicit Design(JSContext* context)
    : global(context), document(context), requireOfViews(context), requireOfDesign(context) {}

  JS::PersistentRootedObject global, document;
  JS::PersistentRootedValue requireOfViews, requireOfDesign;
  bool designRequires = false;
  std::vector<std::unique_ptr<View>> views;
  std::map<std::string, std::unique_ptr<JS::PersistentRootedValue>, std::less<>> filters;
  std::unique_ptr<JS::PersistentRootedValue> validation;
  bool hasValidation = false;
};

// All calls are made on the thread that made the engine.
class Engine {
 public:
  // Bounds the heap of scripts to `heapBytes`.
  Engine(Watchdog& watchdog, size_t heapBytes);
  bool start();

  Outcome open(uint32_t number, std::string_view json);
  void close(uint32_t number);
  // Frees what closed design documents held.
  void collect();
  Design* design(uint32_t number);

  // Appends the answers for one document: of each view its rows or an exception, then what the script logged. With
  // `isAlone`, rows that don't fit the memory are an exception of the document.
  Outcome map(Design& design, const std::vector<uint16_t>& views, uint32_t index, std::string_view json, bool isAlone,
              FrameWriter& frame);
  Outcome reduce(Design& design, uint16_t view, bool rereduce, std::string_view keys, std::string_view values,
                 std::string& json);
  // Finds a filter, or the map of a view whose emissions are the choice. Fails when there is none.
  Outcome findFilter(Design& design, std::string_view name, bool isView, JS::MutableHandleValue function);
  Outcome filter(Design& design, JS::HandleValue function, bool isView, uint32_t index, std::string_view json,
                 std::string_view request, bool& chosen);
  Outcome validate(Design& design, std::string_view document, std::string_view old, std::string_view user,
                   std::string_view security);
  void writeLog(FrameWriter& frame);

  // The arrays and objects in each other of JSON that is handed over.
  static constexpr size_t maximumDepth = 4096;
  // The longest JSON of the rows of one document, in all views.
  static constexpr size_t maximumRowBytes = 64u << 20;
  // Strings from this length on are written by this program.
  static constexpr size_t longString = 4096;
  static constexpr size_t maximumLogLines = 64, maximumTextBytes = 4096;

  JSContext* context = nullptr;
  Watchdog& watchdog;
  JS::PersistentRooted<JS::GCVector<JS::Value, 64, js::SystemAllocPolicy>> emitted;
  bool collects = false;
  std::vector<std::string> log;
  // Called after each map of a document.
  std::function<void(uint32_t)> progress;

 private:
  struct Call;
  bool compile(std::string_view source, JS::MutableHandleValue function);
  bool parse(std::string_view json, JS::MutableHandleValue value);
  // Appends at most `limit` bytes, and fails if there are more.
  bool appendJSON(JS::HandleValue value, std::string& to, size_t limit = SIZE_MAX);
  bool appendString(JS::HandleString string, std::string& to, size_t limit);
  bool useRequire(Design& design, bool ofDesign);
  Outcome fill(Design& design, JS::HandleObject document);
  Outcome mapOne(Design::View& view, JS::HandleValue document, uint32_t index, bool isAlone, size_t documentStart,
                 FrameWriter& frame);
  bool writeRows(JS::HandleValue document, size_t documentStart, FrameWriter& frame);
  // Takes the pending exception, or tells a script that was stopped.
  Outcome failure(bool stopped);
  Outcome finish(bool succeeded);

  size_t heapBytes;
  std::map<uint32_t, std::unique_ptr<Design>> designs;
  std::u16string utf16;
};

}  // namespace scripts
