#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// A function whose line is its first line plus the position.
class FakeFunction : public RuntimeFunction {
 public:
  FakeFunction(std::string function, std::string path, uint32_t line, std::string table = "lines")
      : table_(std::move(table)) {
    name = std::move(function);
    file = std::move(path);
    first_line = line;
  }
  uint32_t LineAt(int32_t position) const override { return first_line + static_cast<uint32_t>(position); }
  bool HasLinesOf(const RuntimeFunction& other) const override {
    return static_cast<const FakeFunction&>(other).table_ == table_;
  }
  size_t bytes() const override { return sizeof *this + name.size() + file.size() + table_.size(); }

 private:
  std::string table_;
};

// The memory of all processes of a test: pid → address of an object → its check and its name.
struct FakeMemories {
  struct Object {
    uint32_t check = 0;
    std::string name;
    size_t bytes = 100;  // that a read of the object costs
  };
  std::map<int32_t, std::map<uint64_t, Object>> processes;
  std::map<int32_t, absl::Status> broken;  // processes whose reads fail
  std::vector<int32_t> opened;

  class Memory : public ProcessMemory {
   public:
    Memory(FakeMemories& all, int32_t pid) : all_(all), pid_(pid) {}
    absl::Status Read(std::span<const Part>) override {
      if (const auto it = all_.broken.find(pid_); it != all_.broken.end()) return it->second;
      if (!all_.processes.contains(pid_)) return Error(absl::StatusCode::kNotFound, "the process has ended");
      return absl::OkStatus();
    }
    const Object* Find(uint64_t address) const {
      const auto process = all_.processes.find(pid_);
      if (process == all_.processes.end()) return nullptr;
      const auto object = process->second.find(address);
      return object == process->second.end() ? nullptr : &object->second;
    }

   private:
    FakeMemories& all_;
    const int32_t pid_;
  };
  std::unique_ptr<ProcessMemory> Open(int32_t pid) {
    opened.push_back(pid);
    return std::make_unique<Memory>(*this, pid);
  }
};

// A runtime whose loop is at the ELF addresses [0x401100, 0x401200). Its objects come from FakeMemories: the pid of the
// memory that ReadFunction gets is not known to it, so `reads` has a part for the object's address.
class FakeRuntimeBinary : public RuntimeBinary {
 public:
  explicit FakeRuntimeBinary(FakeMemories* memories) : memories_(memories) {
    name = "python";
    version = "3.11.2";
    kind = FrameKind::kPython;
    loops = {{0x401100, 0x401200}};
    is_only_interpreter = true;
    layout.kind = TRIB_RUNTIME_PYTHON;
  }

  absl::StatusOr<std::shared_ptr<const RuntimeFunction>> ReadFunction(ProcessMemory& memory, const CodeObject& object,
                                                                      uint64_t bias) const override {
    last_bias = bias;
    // As a real runtime does: the object, and then the object again.
    std::string bytes(SizeOf(object.address), '\0');
    const ProcessMemory::Part part{object.address, bytes};
    RETURN_IF_ERROR(memory.Read({&part, 1}));
    const int32_t pid = memories_->opened.back();
    const auto process = memories_->processes.find(pid);
    if (process == memories_->processes.end()) return Error(absl::StatusCode::kNotFound, "the process has ended");
    const auto found = process->second.find(object.address);
    if (found == process->second.end() || found->second.check != object.check) {
      return Error(absl::StatusCode::kDataLoss, "another object is there");
    }
    if (found->second.name.empty()) return Error(absl::StatusCode::kInvalidArgument, "the object has no name");
    auto function = std::make_shared<FakeFunction>(found->second.name, "/app/" + found->second.name + ".py", 10);
    function->is_hidden = found->second.name == "shim";
    return function;
  }

  bool ReadsFunctionsLike(const RuntimeBinary& other) const override {
    return static_cast<const FakeRuntimeBinary&>(other).types == types;
  }

  int types = 0;
  mutable uint64_t last_bias = 0;

 private:
  size_t SizeOf(uint64_t address) const {
    for (const auto& [pid, objects] : memories_->processes) {
      if (const auto it = objects.find(address); it != objects.end()) return it->second.bytes;
    }
    return 100;
  }

  FakeMemories* memories_;
};

}  // namespace tributary
