#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "kernel-collector/runtimes/jit/names_memory.h"

namespace tributary {

// The name of generated code at one address. The texts belong to the run that contains the name.
struct CodeName {
  std::string_view name, file;  // file "": unknown
  uint32_t line = 0;            // 0: unknown
};

// A function that a process has generated, before it is part of a run.
struct NewCode {
  // The code from `address` up to the next row has this line.
  struct Line {
    uint64_t address = 0;
    uint32_t line = 0;
    std::string_view file;
  };
  uint64_t start = 0, end = 0;
  MonotonicNs since;  // the code exists since this time
  std::string_view name, file;
  uint32_t line = 0;
  std::span<const Line> lines;
};

// The functions that one reading of a perf map or a jitdump has found. If functions overlap, each address has the name
// of the last one. Immutable, and thread-safe. A function needs 64 bytes and its texts; a line 12 bytes.
class CodeRun {
 public:
  enum class Found {
    kNothing,
    kName,
    kLaterName,  // the code that was last at the address did not exist yet at this time
    kGone,       // the code was moved away before this time
  };
  // Finds the code that was at `address` at `time`.
  Found Find(uint64_t address, MonotonicNs time, CodeName* name) const;

  size_t functions() const { return codes_.size(); }
  size_t bytes() const;
  // Codes that did not exist at a time from here on can still be the right ones: the reading before this run began at
  // this time, and did not see them. See CodeTable::Find.
  MonotonicNs maybe_from() const { return maybe_from_; }
  MonotonicNs read_at() const { return read_at_; }
  const std::shared_ptr<NamesMemory>& memory() const { return share_.memory(); }

 private:
  friend class CodeRunBuilder;
  static constexpr uint32_t kNoCode = UINT32_MAX;

  struct Text {
    uint32_t at = 0, size = 0;
  };
  struct Line {
    uint32_t offset = 0;  // from the code's start
    uint32_t line = 0;
    uint32_t file = 0;
  };
  struct Code {
    uint64_t start = 0;
    Text name;
    uint32_t file = 0;
    uint32_t line = 0;
    uint32_t lines_begin = 0, lines_end = 0;
  };
  struct Piece {
    uint64_t start = 0, end = 0;
    MonotonicNs since;
    uint32_t code = kNoCode;
  };

  std::string_view View(Text text) const { return std::string_view(text_).substr(text.at, text.size); }
  const Piece* PieceAt(uint64_t address) const;
  const Piece* PastAt(uint64_t address, MonotonicNs time) const;
  CodeName NameAt(uint64_t address, const Code& code) const;

  std::vector<Piece> pieces_;  // by start, never overlapping
  // Recently covered by others; by start. Pieces that overlap have the same addresses, and are in order of time.
  std::vector<Piece> past_;
  std::vector<Code> codes_;
  std::vector<Text> files_;  // the first is ""
  std::vector<Line> lines_;
  std::string text_;
  MonotonicNs maybe_from_{INT64_MAX}, read_at_;
  NamesMemoryShare share_;
};
using CodeRunPtr = std::shared_ptr<const CodeRun>;

// Collects functions in the order of their file. Not thread-safe.
class CodeRunBuilder {
 public:
  static constexpr size_t kPastMax = 4096;     // covered functions
  static constexpr size_t kPastDepthMax = 16;  // of them at one address
  static constexpr size_t kPastPiecesMax = 2 * kPastMax;
  static constexpr size_t kNameBytesMax = 512, kFileBytesMax = 4096;  // longer texts are cut

  CodeRunBuilder();
  // Adds a function. Texts are cut, and made UTF-8. The caller must check that start < end, and that bytes() is below
  // 4 GiB.
  void Add(const NewCode& code);
  // Marks the code at these addresses as gone from `since` on.
  void AddGone(uint64_t start, uint64_t end, MonotonicNs since);
  // Adds all functions of another run.
  void Add(const CodeRun& run);
  // Finds the function that was added last at this start address. The texts are valid until the next Add.
  bool FindLast(uint64_t start, CodeName* name) const;

  size_t functions() const { return run_->codes_.size(); }
  size_t bytes() const { return run_->bytes() + run_->codes_.size() * kIndexBytes; }

  struct Options {
    MonotonicNs read_at;  // when the reading ended
    MonotonicNs maybe_from{INT64_MAX};
    MonotonicNs lines_are_from;  // used for functions without a time
    // The time of a function, not its place in the file, decides which one is the last. Times after `read_at` are
    // untrue, and count as `read_at`.
    bool by_time = false;
    MonotonicNs past_from;                // functions that were covered before this time are dropped
    std::shared_ptr<NamesMemory> memory;  // the run counts there; null: nowhere
  };
  // Returns the run. The builder is empty then.
  CodeRunPtr Build(const Options& options);

 private:
  static constexpr size_t kIndexBytes = 64;  // of a function, while the run is built

  // Copies functions of another run, each of them once.
  class Copier;

  CodeRun::Text AddText(std::string_view text, size_t bytes_max);
  uint32_t AddFile(std::string_view file);
  void Sweep(const Options& options);
  void AddPast(const std::vector<bool>& is_past);
  void DropUnused();

  std::shared_ptr<CodeRun> run_;
  std::vector<CodeRun::Piece> entries_;
  absl::flat_hash_map<std::string, uint32_t> file_numbers_;
  absl::flat_hash_map<uint64_t, uint32_t> last_at_;  // by start: number in codes_
};

}  // namespace tributary
