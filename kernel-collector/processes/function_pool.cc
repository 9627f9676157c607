#include "kernel-collector/processes/function_pool.h"

#include <string_view>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"

namespace tributary {
namespace {

std::tuple<std::string_view, std::string_view, uint32_t, bool> FieldsOf(const RuntimeFunction& f) {
  return {f.name, f.file, f.first_line, f.is_hidden};
}

}  // namespace

FunctionPool::FunctionPool(Metrics& metrics)
    : functions_gauge_(metrics.AddGauge("tributary_collector_runtime_functions",
                                        "Functions of language runtimes in the collector's memory")),
      bytes_gauge_(metrics.AddGauge("tributary_collector_runtime_function_bytes",
                                    "Memory of these functions: names, files and tables of lines")) {}

CodeFilePtr FunctionPool::Source(const std::string& path) {
  if (path.empty()) return nullptr;
  auto [it, is_new] = sources_.try_emplace(path);
  if (is_new) it->second = MakeNamedCode(path, "");
  return it->second;
}

void FunctionPool::Count(int64_t functions, int64_t bytes) {
  bytes_ += static_cast<size_t>(bytes);
  functions_gauge_.Add(functions);
  bytes_gauge_.Add(bytes);
}

FunctionPool::Number FunctionPool::Add(std::shared_ptr<const RuntimeFunction> function) {
  const uint64_t content = absl::HashOf(FieldsOf(*function));
  if (const auto it = by_content_.find(content); it != by_content_.end()) {
    Slot& known = slots_[it->second];
    const RuntimeFunction& other = *known.pooled.function;
    if (FieldsOf(other) == FieldsOf(*function) && other.HasLinesOf(*function)) {
      ++known.references;
      return it->second;
    }
  }
  Number number = static_cast<Number>(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  by_content_.try_emplace(content, number);
  Slot& slot = slots_[number];
  slot.pooled = {std::move(function), nullptr};
  slot.pooled.source = Source(slot.pooled.function->file);
  slot.content = content;
  slot.bytes = sizeof(Slot) + slot.pooled.function->bytes();
  slot.references = 1;
  Count(1, static_cast<int64_t>(slot.bytes));
  return number;
}

void FunctionPool::Unref(Number number) {
  Slot& slot = slots_[number];
  if (--slot.references > 0) return;
  Count(-1, -static_cast<int64_t>(slot.bytes));
  if (const auto it = by_content_.find(slot.content); it != by_content_.end() && it->second == number) {
    by_content_.erase(it);
  }
  const CodeFilePtr source = std::exchange(slot.pooled, {}).source;
  // The map and `source` are the last owners.
  if (source != nullptr && source.use_count() == 2) sources_.erase(source->path);
  free_.push_back(number);
}

}  // namespace tributary
