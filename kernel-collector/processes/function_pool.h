#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// A function of a language runtime, with the executable that stands for its source file in frames.
struct PooledFunction {
  std::shared_ptr<const RuntimeFunction> function;
  CodeFilePtr source;  // null: the file is unknown
};

// Contains the functions of all processes. Processes that run the same program have the same functions at different
// addresses, so functions with equal content are stored once. Counts the references to each function, and drops a
// function without references. Loop thread only.
class FunctionPool {
 public:
  using Number = uint32_t;

  explicit FunctionPool(Metrics& metrics);

  // Adds the function, or finds an equal one. The caller owns one reference to the result.
  Number Add(std::shared_ptr<const RuntimeFunction> function);
  void Ref(Number number) { ++slots_[number].references; }
  void Unref(Number number);
  // The result is valid until the function's last reference is dropped.
  const PooledFunction& At(Number number) const { return slots_[number].pooled; }

  size_t BytesOf(Number number) const { return slots_[number].bytes; }

  size_t size() const { return slots_.size() - free_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Slot {
    PooledFunction pooled;
    uint64_t content = 0;  // a hash of the fields
    size_t bytes = 0;
    uint32_t references = 0;
  };
  CodeFilePtr Source(const std::string& path);
  void Count(int64_t functions, int64_t bytes);

  std::vector<Slot> slots_;
  std::vector<Number> free_;
  absl::flat_hash_map<uint64_t, Number> by_content_;       // of functions with equal hashes, the first one
  absl::flat_hash_map<std::string, CodeFilePtr> sources_;  // by path
  size_t bytes_ = 0;
  Gauge& functions_gauge_;
  Gauge& bytes_gauge_;
};

}  // namespace tributary
