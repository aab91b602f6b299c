#include "Engine.h"

#include <cstdio>
#include <cstring>
#include <new>

#include <js/Array.h>
#include <js/CharacterEncoding.h>
#include <js/CompilationAndEvaluation.h>
#include <js/ContextOptions.h>
#include <js/Conversions.h>
#include <js/ErrorReport.h>
#include <js/Exception.h>
#include <js/GCAPI.h>
#include <js/Initialization.h>
#include <js/Interrupt.h>
#include <js/JSON.h>
#include <js/Object.h>
#include <js/Principals.h>
#include <js/PropertyAndElement.h>
#include <js/RealmOptions.h>
#include <js/SourceText.h>
#include <js/Stack.h>
#include <js/String.h>
#include <js/ValueArray.h>

#include "Prelude.h"
#include "Text.h"

namespace scripts {

static Engine& engineOf(JSContext* context) { return *static_cast<Engine*>(JS_GetContextPrivate(context)); }

// Nothing of a script runs after its call has returned: promises never settle.
class NoJobs : public JS::JobQueue {
 public:
  JSObject* getIncumbentGlobal(JSContext* context) override { return JS::CurrentGlobalOrNull(context); }
  bool enqueuePromiseJob(JSContext*, JS::HandleObject, JS::HandleObject, JS::HandleObject,
                         JS::HandleObject) override {
    return true;
  }
  void runJobs(JSContext*) override {}
  bool empty() const override { return true; }

 protected:
  js::UniquePtr<SavedJobQueue> saveJobQueue(JSContext*) override { return nullptr; }
};

static NoJobs noJobs;

static bool refuseEvaluation(JSContext*, JS::RuntimeCode, JS::HandleString) { return false; }
static const JSSecurityCallbacks security = {refuseEvaluation, nullptr};

static bool interrupted(JSContext* context) { return !engineOf(context).watchdog.isPastDeadline(); }

static const JSClass globalClass = {"global", JSCLASS_GLOBAL_FLAGS, &JS::DefaultGlobalClassOps};

static std::string utf8(JSContext* context, JS::HandleString string) {
  JSLinearString* linear = JS_EnsureLinearString(context, string);
  if (!linear) {
    JS_ClearPendingException(context);
    return std::string();
  }
  std::string text(JS::GetDeflatedUTF8StringLength(linear), '\0');
  text.resize(JS::DeflateStringToUTF8Buffer(linear, mozilla::Span<char>(text.data(), text.size())));
  return text;
}

// MARK: Host functions

static bool emit(JSContext* context, unsigned count, JS::Value* values) {
  JS::CallArgs arguments = JS::CallArgsFromVp(count, values);
  Engine& engine = engineOf(context);
  arguments.rval().setUndefined();
  if (!engine.collects) return true;
  if (!engine.emitted.append(arguments.get(0)) || !engine.emitted.append(arguments.get(1))) {
    JS_ReportOutOfMemory(context);
    return false;
  }
  return true;
}

static bool log(JSContext* context, unsigned count, JS::Value* values) {
  JS::CallArgs arguments = JS::CallArgsFromVp(count, values);
  Engine& engine = engineOf(context);
  arguments.rval().setUndefined();
  if (engine.log.size() >= Engine::maximumLogLines) return true;
  std::string line;
  if (arguments.get(0).isString()) {
    JS::RootedString string(context, arguments.get(0).toString());
    // Only what is kept is copied.
    if (JS_GetStringLength(string) > Engine::maximumTextBytes) {
      string = JS_NewDependentString(context, string, 0, Engine::maximumTextBytes);
      if (!string) return false;
    }
    line = utf8(context, string);
  } else {
    JS::RootedValue value(context, arguments.get(0));
    auto append = [](const char16_t* text, uint32_t length, void* to) {
      appendJSON(text, length, *static_cast<std::string*>(to));
      return true;
    };
    if (!JS_Stringify(context, &value, nullptr, JS::NullHandleValue, append, &line)) return false;
  }
  engine.log.push_back(std::move(line));
  return true;
}

// compile(source, name): the function (module, exports, require) whose body is the source.
static bool compileModule(JSContext* context, unsigned count, JS::Value* values) {
  JS::CallArgs arguments = JS::CallArgsFromVp(count, values);
  JS::RootedString source(context, JS::ToString(context, arguments.get(0)));
  if (!source) return false;
  std::string text = utf8(context, source);
  JS::SourceText<mozilla::Utf8Unit> units;
  if (!units.init(context, text.data(), text.size(), JS::SourceOwnership::Borrowed)) return false;
  JS::CompileOptions options(context);
  options.setFileAndLine("module", 1);
  JS::RootedObjectVector scope(context);
  const char* names[] = {"module", "exports", "require"};
  JSFunction* function = JS::CompileFunction(context, scope, options, "module", 3, names, units);
  if (!function) return false;
  arguments.rval().setObject(*JS_GetFunctionObject(function));
  return true;
}

// MARK: Calls

// A call of a script: under the watchdog, and in the design document's realm.
struct Engine::Call {
  Call(Engine& engine, uint32_t document) : engine(engine) {
    engine.log.clear();
    engine.watchdog.callBegins(document);
  }
  ~Call() {
    if (!ended) end();
  }
  bool end() {
    ended = true;
    return engine.watchdog.callEnds();
  }
  Engine& engine;
  bool ended = false;
};

Engine::Engine(Watchdog& watchdog, size_t heapBytes) : watchdog(watchdog), heapBytes(heapBytes) {}

bool Engine::start() {
  if (!JS_Init()) return false;
  context = JS_NewContext(uint32_t(std::min<size_t>(heapBytes, UINT32_MAX)));
  if (!context) return false;
  JS_SetContextPrivate(context, this);
  JS_SetNativeStackQuota(context, 2u << 20);
  JS::SetJobQueue(context, &noJobs);
  JS_SetSecurityCallbacks(context, &security);
  JS::ContextOptionsRef(context).setWasm(false).setAsmJS(false);
  if (!JS::InitSelfHostedCode(context) || !JS_AddInterruptCallback(context, interrupted)) return false;
  emitted.init(context, JS::GCVector<JS::Value, 64, js::SystemAllocPolicy>());
  watchdog.engineStarted(context);
  return true;
}

Outcome Engine::failure(bool stopped) {
  Outcome outcome;
  outcome.kind = Outcome::failed;
  if (stopped || !JS_IsExceptionPending(context)) {
    JS_ClearPendingException(context);
    outcome.kind = Outcome::stopped;
    outcome.text = stopped ? "The script took too long." : "The script was stopped.";
    return outcome;
  }
  if (JS_IsThrowingOutOfMemory(context)) {
    JS_ClearPendingException(context);
    outcome.kind = Outcome::memory;
    outcome.text = "The script needs more memory than it may have.";
    return outcome;
  }
  JS::ExceptionStack exception(context);
  if (!JS::StealPendingExceptionStack(context, &exception)) {
    outcome.text = "an exception";
    return outcome;
  }
  JS::RootedValue value(context, exception.exception());
  if (value.isObject()) {
    JS::RootedObject object(context, &value.toObject());
    if (!JS_ErrorFromException(context, object)) {
      JS::RootedValue word(context);
      for (const char* name : {"forbidden", "unauthorized"}) {
        if (!JS_GetProperty(context, object, name, &word)) {
          JS_ClearPendingException(context);
          continue;
        }
        if (word.isUndefined()) continue;
        outcome.kind = name[0] == 'f' ? Outcome::forbidden : Outcome::unauthorized;
        if (word.isString()) {
          JS::RootedString string(context, word.toString());
          outcome.text = utf8(context, string);
          return outcome;
        }
        if (appendJSON(word, outcome.text)) return outcome;
        JS_ClearPendingException(context);
        return outcome;
      }
      if (!appendJSON(value, outcome.text)) {
        JS_ClearPendingException(context);
        outcome.text = "an exception";
      }
      return outcome;
    }
    JS::ErrorReportBuilder report(context);
    if (report.init(context, exception, JS::ErrorReportBuilder::NoSideEffects)) {
      outcome.text = report.toStringResult().c_str();
    } else {
      JS_ClearPendingException(context);
      outcome.text = "an exception";
    }
    return outcome;
  }
  JS::RootedString string(context);
  if (value.isSymbol() || !(string = JS::ToString(context, value))) {
    JS_ClearPendingException(context);
    outcome.text = "an exception";
  } else {
    outcome.text = utf8(context, string);
  }
  return outcome;
}

bool Engine::parse(std::string_view json, JS::MutableHandleValue value) {
  // The engine freezes by recursion and doesn't check the depth.
  if (isDeeper(json, maximumDepth)) {
    JS_ReportErrorUTF8(context, "The JSON is nested too deeply.");
    return false;
  }
  if (isASCII(json)) {
    JS::RootedString string(context, JS_NewStringCopyN(context, json.data(), json.size()));
    return string && JS_ParseJSON(context, string, value);
  }
  utf16.clear();
  appendUTF16(json, utf16);
  bool parsed = JS_ParseJSON(context, utf16.data(), uint32_t(utf16.size()), value);
  if (utf16.capacity() > (1u << 20)) utf16 = std::u16string();
  return parsed;
}

// Where JSON of the engine goes.
struct JSONTarget {
  std::string& text;
  size_t limit;
  bool isTooLong = false, lacksMemory = false;

  static bool append(const char16_t* text, uint32_t length, void* to) {
    JSONTarget& target = *static_cast<JSONTarget*>(to);
    // A unit takes a byte at least.
    target.isTooLong = length > target.limit;
    if (target.isTooLong) return false;
    // No exception passes through the engine.
    try {
      scripts::appendJSON(text, length, target.text);
    } catch (const std::bad_alloc&) {
      target.lacksMemory = true;
    }
    return !target.lacksMemory;
  }
};

static bool reportTooLong(JSContext* context) {
  JS_ReportErrorUTF8(context, "The rows of one document take more than 64 MiB.");
  return false;
}

// Long strings of Latin-1 aren't given to the engine, whose own copy takes two bytes and more for each character.
bool Engine::appendString(JS::HandleString string, std::string& to, size_t limit) {
  JSLinearString* linear = JS_EnsureLinearString(context, string);
  if (!linear) return false;
  size_t length = JS_GetStringLength(string);
  if (length > limit) return reportTooLong(context);
  bool fits = true;
  {
    JS::AutoCheckCannotGC noGC;
    try {
      appendJSONString(JS::GetLatin1LinearStringChars(noGC, linear), length, to);
    } catch (const std::bad_alloc&) {
      fits = false;
    }
  }
  if (!fits) JS_ReportOutOfMemory(context);
  return fits;
}

bool Engine::appendJSON(JS::HandleValue value, std::string& to, size_t limit) {
  if (value.isInt32()) {
    char digits[16];
    to.append(digits, size_t(snprintf(digits, sizeof digits, "%d", value.toInt32())));
    return true;
  }
  if (value.isNullOrUndefined()) {
    to.append("null");
    return true;
  }
  if (value.isBoolean()) {
    to.append(value.toBoolean() ? "true" : "false");
    return true;
  }
  if (value.isString() && JS_GetStringLength(value.toString()) >= longString) {
    JS::RootedString string(context, value.toString());
    if (JS::StringHasLatin1Chars(string)) return appendString(string, to, limit);
  }
  JSONTarget target{to, limit};
  JS::RootedValue copy(context, value);
  if (JS_Stringify(context, &copy, nullptr, JS::NullHandleValue, JSONTarget::append, &target)) return true;
  if (target.isTooLong) return reportTooLong(context);
  if (target.lacksMemory) JS_ReportOutOfMemory(context);
  return false;
}

// MARK: Compiling

// The source is a program whose value is a function, or a function expression without parentheses.
bool Engine::compile(std::string_view source, JS::MutableHandleValue function) {
  JS::CompileOptions options(context);
  options.setFileAndLine("script", 1);
  JS::RootedScript script(context);
  {
    JS::SourceText<mozilla::Utf8Unit> units;
    if (!units.init(context, source.data(), source.size(), JS::SourceOwnership::Borrowed)) return false;
    script = JS::Compile(context, options, units);
  }
  if (!script) {
    // Taken and set again, it would be an exception like others.
    if (JS_IsThrowingOutOfMemory(context)) return false;
    JS::ExceptionStack first(context);
    if (!JS::StealPendingExceptionStack(context, &first)) return false;
    std::string expression = "null," + std::string(source);
    JS::SourceText<mozilla::Utf8Unit> units;
    if (!units.init(context, expression.data(), expression.size(), JS::SourceOwnership::Borrowed)) return false;
    script = JS::Compile(context, options, units);
    if (!script) {
      // A function without a name isn't a statement; what else is wrong with it, the second attempt says.
      JS::RootedObject error(context, first.exception().isObject() ? &first.exception().toObject() : nullptr);
      JSErrorReport* report = error ? JS_ErrorFromException(context, error) : nullptr;
      bool named = !report || !report->message() || !strstr(report->message().c_str(), "requires a name");
      if (named) JS::SetPendingExceptionStack(context, first);
      return false;
    }
  }
  if (!JS_ExecuteScript(context, script, function)) return false;
  if (!function.isObject() || !JS::IsCallable(&function.toObject())) {
    JS_ReportErrorUTF8(context, "Expression does not eval to a function.");
    return false;
  }
  return true;
}

bool Engine::useRequire(Design& design, bool ofDesign) {
  if (design.designRequires == ofDesign) return true;
  JS::RootedObject global(context, design.global);
  JS::RootedValue require(context, ofDesign ? design.requireOfDesign : design.requireOfViews);
  if (!JS_DefineProperty(context, global, "require", require, 0)) return false;
  design.designRequires = ofDesign;
  return true;
}

/// Whether it begins like `_top_N` and `_bottom_N`. `fault` says in CouchDB's words what is wrong with N, which has to be from 1 to 100.
static bool isRank(const std::string& source, std::string *fault) {
  for (const std::string prefix : {"_top_", "_bottom_"}) {
    if (source.rfind(prefix, 0) != 0) continue;
    std::string digits = source.substr(prefix.size());
    const bool isNegative = digits.rfind('-', 0) == 0;
    if (isNegative) digits.erase(0, 1);
    const size_t first = digits.find_first_not_of('0');
    const std::string number = first == std::string::npos ? "" : digits.substr(first);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) {
      *fault = "invalid rank reducer";
    } else if (isNegative || number.empty() || number.size() > 3 || std::stoi(number) > 100) {
      *fault = "rank value must be between 1 and 100";
    }
    return true;
  }
  return false;
}

static Outcome invalid(std::string text) {
  Outcome outcome;
  outcome.kind = Outcome::failed;
  outcome.failure = Failure::invalidDefinition;
  outcome.text = std::move(text);
  return outcome;
}

static std::string withoutErrorName(const std::string& text) {
  constexpr char prefix[] = "Error: ";
  return text.compare(0, sizeof prefix - 1, prefix) == 0 ? text.substr(sizeof prefix - 1) : text;
}

Outcome Engine::open(uint32_t number, std::string_view json) {
  close(number);
  JS::RealmOptions options;
  options.creationOptions().setNewCompartmentAndZone().setSharedMemoryAndAtomicsEnabled(false);
  JS::RootedObject global(
    context, JS_NewGlobalObject(context, &globalClass, nullptr, JS::FireOnNewGlobalHook, options));
  if (!global) return failure(false);
  JSAutoRealm realm(context, global);
  Call call(*this, noDocument);
  auto design = std::make_unique<Design>(context);
  design->global = global;
  JS::RootedValue parsed(context);
  if (!parse(json, &parsed)) return failure(call.end());
  if (!parsed.isObject()) return invalid("A design document must be a JSON object");
  JS::RootedObject document(context, &parsed.toObject());
  if (!JS_DeepFreezeObject(context, document)) return failure(call.end());
  design->document = document;
  Outcome outcome = fill(*design, document);
  bool stopped = call.end();
  if (outcome.kind == Outcome::returned && stopped) outcome = failure(true);
  if (outcome.kind == Outcome::returned) designs[number] = std::move(design);
  return outcome;
}

Outcome Engine::fill(Design& design, JS::HandleObject document) {
  JS::RootedObject global(context, design.global);
  JS::RootedValue views(context), lib(context), value(context), map(context), reduce(context);
  if (!JS_DefineFunction(context, global, "emit", scripts::emit, 2, 0) ||
      !JS_DefineFunction(context, global, "log", scripts::log, 1, 0) ||
      !JS_GetProperty(context, document, "views", &views)) {
    return failure(watchdog.isPastDeadline());
  }
  bool isArray = false;
  if (!views.isUndefined() && (!views.isObject() || !JS::IsArrayObject(context, views, &isArray) || isArray)) {
    return invalid("`views` field must have object type");
  }

  // The modules of views are those under views/lib.
  JS::RootedObject viewsObject(context, views.isObject() ? &views.toObject() : nullptr);
  JS::RootedObject root(context, JS_NewPlainObject(context)), libraries(context, JS_NewPlainObject(context));
  if (!root || !libraries) return failure(false);
  if (viewsObject && !JS_GetProperty(context, viewsObject, "lib", &lib)) return failure(false);
  JS::RootedValue librariesValue(context, JS::ObjectValue(*libraries));
  if (!JS_DefineProperty(context, libraries, "lib", lib, JSPROP_ENUMERATE) ||
      !JS_DefineProperty(context, root, "views", librariesValue, JSPROP_ENUMERATE)) {
    return failure(false);
  }
  JSFunction* compiler = JS_NewFunction(context, compileModule, 2, 0, "compile");
  if (!compiler) return failure(false);
  JS::RootedValue compilerValue(context, JS::ObjectValue(*JS_GetFunctionObject(compiler)));
  JS::CompileOptions options(context);
  options.setFileAndLine("prelude", 1);
  JS::SourceText<mozilla::Utf8Unit> units;
  if (!units.init(context, prelude, sizeof prelude - 1, JS::SourceOwnership::Borrowed) ||
      !JS::Evaluate(context, options, units, &value)) {
    return failure(watchdog.isPastDeadline());
  }
  JS::RootedValueArray<4> arguments(context);
  arguments[0].setObject(*global);
  arguments[1].setObject(*root);
  arguments[2].setObject(*document);
  arguments[3].set(compilerValue);
  JS::RootedValue pair(context), require(context);
  if (!JS_CallFunctionValue(context, nullptr, value, arguments, &pair)) return failure(watchdog.isPastDeadline());
  JS::RootedObject pairObject(context, &pair.toObject());
  if (!JS_GetElement(context, pairObject, 0, &require)) return failure(false);
  design.requireOfViews = require;
  if (!JS_GetElement(context, pairObject, 1, &require)) return failure(false);
  design.requireOfDesign = require;
  design.designRequires = true;
  if (!useRequire(design, false)) return failure(false);

  if (!JS_GetProperty(context, document, "validate_doc_update", &value)) return failure(false);
  design.hasValidation = value.isString();
  if (!viewsObject) return Outcome();

  JS::Rooted<JS::IdVector> names(context, JS::IdVector(context));
  if (!JS_Enumerate(context, viewsObject, &names)) return failure(false);
  for (size_t index = 0; index < names.length(); index++) {
    JS::RootedId id(context, names[index]);
    JS::RootedValue nameValue(context);
    if (!JS_IdToValue(context, id, &nameValue)) return failure(false);
    JS::RootedString nameString(context, JS::ToString(context, nameValue));
    if (!nameString) return failure(false);
    std::string name = utf8(context, nameString);
    if (!JS_GetPropertyById(context, viewsObject, id, &value)) return failure(false);
    const bool mayBeLibrary = name == "lib";
    if (mayBeLibrary && !value.isObject()) continue;
    if (!value.isObject()) return invalid("`views." + name + "` field must have object type");
    JS::RootedObject definition(context, &value.toObject());
    if (!JS_GetProperty(context, definition, "map", &map) || !JS_GetProperty(context, definition, "reduce", &reduce)) {
      return failure(false);
    }
    // `lib` holds modules, unless it has a map function like any view.
    if (mayBeLibrary && (!map.isString() || !(reduce.isUndefined() || reduce.isString()))) continue;
    if (map.isUndefined()) return invalid("View `" + name + "` must contain map function");
    if (!map.isString()) return invalid("`views." + name + ".map` field must have string type");
    if (!reduce.isUndefined() && !reduce.isString()) {
      return invalid("`views." + name + ".reduce` field must have string type");
    }
    auto view = std::make_unique<Design::View>(context);
    view->name = name;
    bool isLibrary = false;
    for (bool isMap : {true, false}) {
      if (!isMap && reduce.isUndefined()) continue;
      JS::RootedString text(context, isMap ? map.toString() : reduce.toString());
      std::string source = utf8(context, text);
      if (!isMap && source.compare(0, 1, "_") == 0) {
        // Whatever follows a name is ignored, as the end of the line of a file that a tool has sent.
        for (const char *builtIn : {"_sum", "_count", "_stats", "_approx_count_distinct", "_first", "_last"}) {
          if (source.rfind(builtIn, 0) == 0) view->builtIn = builtIn;
        }
        std::string fault;
        if (isRank(source, &fault)) view->builtIn = source;
        if (!fault.empty()) return invalid(fault);
        if (view->builtIn.empty()) {
          return invalid("`" + source + "` is not a supported reduce function.");
        }
        continue;
      }
      JS::RootedValue function(context);
      if (!compile(source, &function)) {
        Outcome outcome = failure(watchdog.isPastDeadline());
        if (outcome.ends()) return outcome;
        if (mayBeLibrary) {
          isLibrary = true;
          break;
        }
        outcome.kind = Outcome::failed;
        outcome.failure = Failure::compilation;
        outcome.text = std::string("Compilation of the ") + (isMap ? "map" : "reduce") + " function in the '" + name +
                       "' view failed: " + withoutErrorName(outcome.text) + " (" + source + ")";
        return outcome;
      }
      if (isMap) {
        view->map = function;
      } else {
        view->reduce = function;
      }
    }
    if (!isLibrary) design.views.push_back(std::move(view));
  }
  return Outcome();
}

void Engine::close(uint32_t number) { designs.erase(number); }

void Engine::collect() { JS_GC(context); }

Design* Engine::design(uint32_t number) {
  auto found = designs.find(number);
  return found == designs.end() ? nullptr : found->second.get();
}

// MARK: Views

void Engine::writeLog(FrameWriter& frame) {
  frame.u16(uint16_t(log.size()));
  for (const std::string& line : log) frame.shortText(line, maximumTextBytes);
}

// Of a view: 0, the number of rows, and of each row whether its value is the document, its key, its value; or 1 and
// the exception. Then what was logged.
Outcome Engine::mapOne(Design::View& view, JS::HandleValue document, uint32_t index, bool isAlone,
                       size_t documentStart, FrameWriter& frame) {
  size_t start = frame.size();
  emitted.clear();
  collects = true;
  Call call(*this, index);
  JS::RootedValue function(context, view.map), result(context);
  bool succeeded = JS_CallFunctionValue(context, nullptr, function, JS::HandleValueArray(document), &result);
  collects = false;
  bool isWriting = succeeded;
  if (succeeded) succeeded = writeRows(document, documentStart, frame);
  Outcome outcome;
  if (!succeeded) outcome = failure(watchdog.isPastDeadline());
  if (call.end() && !outcome.ends()) {
    outcome.kind = Outcome::stopped;
    outcome.text = "The script took too long.";
  }
  if (emitted.length() > 100000 || outcome.kind == Outcome::memory) emitted.get().clearAndFree(); else emitted.clear();
  if (outcome.kind == Outcome::memory && isAlone && isWriting) {
    frame.bytes.resize(start);
    frame.bytes.shrink_to_fit();
    JS_GC(context);
    outcome.kind = Outcome::failed;
    outcome.text = "The rows of the document need more memory than a script may have.";
  }
  if (outcome.ends()) return outcome;
  if (outcome.kind != Outcome::returned) {
    frame.bytes.resize(start);
    frame.u8(1);
    frame.shortText(outcome.text, maximumTextBytes);
  }
  if (frame.size() - documentStart > maximumRowBytes) log.clear();
  writeLog(frame);
  return Outcome();
}

bool Engine::writeRows(JS::HandleValue document, size_t documentStart, FrameWriter& frame) {
  auto isDocument = [&](size_t at) {
    return at < emitted.length() && emitted[at].isObject() && &emitted[at].toObject() == &document.toObject();
  };
  frame.u8(0);
  frame.u32(uint32_t(emitted.length() / 2));
  for (size_t at = 0; at < emitted.length(); at++) {
    bool isValue = at % 2 == 1;
    try {
      if (!isValue) frame.u8(isDocument(at + 1) ? 1 : 0);
      size_t length = frame.size(), used = length - documentStart;
      frame.u32(0);
      if (used > maximumRowBytes) return reportTooLong(context);
      if (!(isValue && isDocument(at)) && !appendJSON(emitted[at], frame.bytes, maximumRowBytes - used)) return false;
      frame.setU32(length, uint32_t(frame.size() - length - 4));
    } catch (const std::bad_alloc&) {
      JS_ReportOutOfMemory(context);
      return false;
    }
  }
  return frame.size() - documentStart <= maximumRowBytes || reportTooLong(context);
}

Outcome Engine::map(Design& design, const std::vector<uint16_t>& views, uint32_t index, std::string_view json,
                    bool isAlone, FrameWriter& frame) {
  JSAutoRealm realm(context, design.global);
  size_t documentStart = frame.size();
  JS::RootedValue document(context);
  // Frozen, so that no map sees what another one did to it.
  bool usable = useRequire(design, false) && parse(json, &document);
  if (usable && !document.isObject()) {
    JS_ReportErrorUTF8(context, "A document must be a JSON object.");
    usable = false;
  }
  if (usable) {
    JS::RootedObject object(context, &document.toObject());
    usable = JS_DeepFreezeObject(context, object);
  }
  Outcome refused;
  if (!usable) {
    refused = failure(false);
    if (refused.ends()) return refused;
  }
  for (uint16_t number : views) {
    if (!usable) {
      frame.u8(1);
      frame.shortText(refused.text, maximumTextBytes);
      frame.u16(0);
      continue;
    }
    Outcome outcome = mapOne(*design.views[number], document, index, isAlone, documentStart, frame);
    if (outcome.ends()) return outcome;
    if (progress) progress(index);
  }
  return Outcome();
}

Outcome Engine::finish(bool succeeded) {
  Outcome outcome;
  bool late = watchdog.isPastDeadline();
  if (!succeeded) outcome = failure(late);
  if (watchdog.callEnds() && !outcome.ends()) {
    outcome.kind = Outcome::stopped;
    outcome.text = "The script took too long.";
  }
  return outcome;
}

Outcome Engine::reduce(Design& design, uint16_t number, bool rereduce, std::string_view keys,
                       std::string_view values, std::string& json) {
  JSAutoRealm realm(context, design.global);
  JS::RootedValueArray<3> arguments(context);
  JS::RootedValue result(context), function(context, design.views[number]->reduce);
  log.clear();
  watchdog.callBegins(noDocument);
  arguments[2].setBoolean(rereduce);
  bool succeeded = useRequire(design, false) && (keys.empty() || parse(keys, arguments[0])) &&
                   parse(values, arguments[1]);
  if (succeeded && keys.empty()) arguments[0].setNull();
  succeeded = succeeded && JS_CallFunctionValue(context, nullptr, function, arguments, &result) &&
              appendJSON(result, json);
  return finish(succeeded);
}

// MARK: Filters and validation

Outcome Engine::findFilter(Design& design, std::string_view name, bool isView, JS::MutableHandleValue function) {
  Outcome absent;
  absent.kind = Outcome::missing;
  absent.failure = Failure::missing;
  absent.text = "missing json key: " + std::string(name);
  if (isView) {
    for (auto& view : design.views) {
      if (view->name == name) {
        function.set(view->map);
        return Outcome();
      }
    }
    return absent;
  }
  auto found = design.filters.find(name);
  if (found != design.filters.end()) {
    function.set(*found->second);
    return Outcome();
  }
  JSAutoRealm realm(context, design.global);
  JS::RootedObject document(context, design.document);
  JS::RootedValue filters(context), source(context);
  if (!JS_GetProperty(context, document, "filters", &filters)) return failure(false);
  if (!filters.isObject()) return absent;
  JS::RootedObject object(context, &filters.toObject());
  bool own = false;
  std::u16string wide;
  appendUTF16(name, wide);
  JS::RootedId id(context);
  if (!JS_CharsToId(context, JS::TwoByteChars(wide.data(), wide.size()), &id) ||
      !JS_HasOwnPropertyById(context, object, id, &own)) {
    return failure(false);
  }
  if (own && !JS_GetPropertyById(context, object, id, &source)) return failure(false);
  if (!source.isString()) return absent;
  watchdog.callBegins(noDocument);
  JS::RootedString string(context, source.toString());
  Outcome outcome = finish(useRequire(design, true) && compile(utf8(context, string), function));
  if (outcome.kind == Outcome::returned) {
    design.filters[std::string(name)] = std::make_unique<JS::PersistentRootedValue>(context, function);
  } else if (!outcome.ends()) {
    outcome.kind = Outcome::failed;
    outcome.failure = Failure::compilation;
    outcome.text = withoutErrorName(outcome.text) + " (" + utf8(context, string) + ")";
  }
  return outcome;
}

Outcome Engine::filter(Design& design, JS::HandleValue function, bool isView, uint32_t index, std::string_view json,
                       std::string_view request, bool& chosen) {
  JSAutoRealm realm(context, design.global);
  JS::RootedValueArray<2> arguments(context);
  JS::RootedValue result(context);
  JS::RootedObject self(context, design.document);
  log.clear();
  emitted.clear();
  watchdog.callBegins(index);
  collects = isView;
  bool succeeded = useRequire(design, !isView) && parse(json, arguments[0]) &&
                   (isView || parse(request, arguments[1])) &&
                   JS_CallFunctionValue(context, isView ? nullptr : JS::HandleObject(self), function, arguments, &result);
  collects = false;
  chosen = isView ? !emitted.empty() : JS::ToBoolean(result);
  emitted.clear();
  return finish(succeeded);
}

Outcome Engine::validate(Design& design, std::string_view document, std::string_view old, std::string_view user,
                         std::string_view security) {
  JSAutoRealm realm(context, design.global);
  JS::RootedObject self(context, design.document);
  JS::RootedValue source(context), function(context), result(context);
  log.clear();
  if (!design.validation) {
    if (!JS_GetProperty(context, self, "validate_doc_update", &source)) return failure(false);
    if (!source.isString()) return Outcome();
    watchdog.callBegins(noDocument);
    JS::RootedString string(context, source.toString());
    Outcome outcome = finish(useRequire(design, true) && compile(utf8(context, string), &function));
    if (outcome.ends()) return outcome;
    if (outcome.kind != Outcome::returned) {
      outcome.kind = Outcome::failed;
      outcome.failure = Failure::compilation;
      outcome.text = withoutErrorName(outcome.text) + " (" + utf8(context, string) + ")";
      return outcome;
    }
    design.validation = std::make_unique<JS::PersistentRootedValue>(context, function);
  }
  function = *design.validation;
  JS::RootedValueArray<4> arguments(context);
  watchdog.callBegins(0);
  bool succeeded = useRequire(design, true) && parse(document, arguments[0]) &&
                   (old.empty() || parse(old, arguments[1])) && parse(user, arguments[2]) &&
                   parse(security, arguments[3]);
  if (succeeded && old.empty()) arguments[1].setNull();
  succeeded = succeeded && JS_CallFunctionValue(context, self, function, arguments, &result);
  return finish(succeeded);
}

}  // namespace scripts
