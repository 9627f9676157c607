#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// The numbers that the next node and the next frame get.
struct TrieEnds {
  uint64_t nodes = 0, frames = 0;
  friend bool operator==(const TrieEnds&, const TrieEnds&) = default;
};

// Receives the pieces of a day's trie, in order.
class TrieSink {
 public:
  virtual ~TrieSink() = default;
  virtual TrieEnds ends() const = 0;
  // If it returns an error, the sink has not changed.
  virtual absl::Status Append(std::string_view raw_piece) = 0;
  // Adds placeholders until `ends() == to`, as AppendPlaceholders does. `to` is not below `ends()`.
  virtual void Fill(const TrieEnds& to, StringId name) = 0;
};

// Appends placeholders for lost nodes to `trie`. `before`: the numbers of the nodes and frames that come before those
// in `trie`. A placeholder is a child of the root, and its frame has the name `name`. So a stack that needs a lost node
// shows that name in place of the node and of the node's ancestors.
void AppendPlaceholders(const TrieEnds& before, const TrieEnds& to, StringId name, Trie* trie);

// Appends a piece to `trie`. As AppendTriePiece, but leaves `trie` unchanged after an error.
absl::Status AppendWholePiece(std::string_view raw_piece, const TrieEnds& before, Trie* trie);

// A sink that appends to a Trie. `before`: as for AppendPlaceholders.
class TrieAppender final : public TrieSink {
 public:
  explicit TrieAppender(Trie* trie, TrieEnds before = {}) : trie_(trie), before_(before) {}
  TrieEnds ends() const override;
  absl::Status Append(std::string_view raw_piece) override { return AppendWholePiece(raw_piece, before_, trie_); }
  void Fill(const TrieEnds& to, StringId name) override { AppendPlaceholders(before_, to, name, trie_); }

 private:
  Trie* trie_;
  const TrieEnds before_;
};

// A sink that only counts. It finds damage without the memory for a trie, but it needs the memory of one piece.
class TrieCounter final : public TrieSink {
 public:
  TrieEnds ends() const override { return ends_; }
  absl::Status Append(std::string_view raw_piece) override;
  void Fill(const TrieEnds& to, StringId) override { ends_ = to; }

 private:
  TrieEnds ends_{1, 1};
};

// Damaged pieces of a day that follow each other.
struct DamagedRun {
  int64_t first = 0, last = 0;  // ids of pieces
  std::string reason;           // of the first one
  // The numbers after the run. nullopt: unknown, and the run goes on to the newest piece.
  std::optional<TrieEnds> ends;
  bool last_of_day = false;  // no intact piece confirms `ends`
};

// Reads the pieces of tries from a shard's file, and skips damaged ones. A piece without a damaged piece before it is
// numbered by its place. After a damaged piece, only a piece with stored ends can be numbered.
class TriePieces {
 public:
  // More lost nodes or frames than this are not believed.
  static constexpr uint64_t kGapMax = 1u << 25;

  // `database` must outlive the object.
  static absl::StatusOr<TriePieces> Prepare(Database& database);

  // Passes the day's pieces with an id above `after` to `sink`. Gaps that were stored become placeholders. Other
  // damaged pieces are added to `damage`, and become placeholders if their ends are known. If not, the sink ends before
  // them. Errors: those of reading the file, but not DataLoss for a single row.
  absl::Status Read(Day day, int64_t after, TrieSink& sink, std::vector<DamagedRun>* damage);
  // Returns the id of the day's newest gap, or 0.
  absl::StatusOr<int64_t> NewestGap(Day day);

 private:
  struct Gap {
    int64_t first = 0, last = 0;
    TrieEnds ends;
    StringId name;
  };
  struct Run;  // the damaged run that is not at its end yet

  TriePieces() = default;
  absl::StatusOr<std::vector<Gap>> GapsOf(Day day);
  absl::Status ReadPiece(int64_t id, TrieSink& sink, Run& run);

  Statement gaps_, newest_gap_, list_, read_;
};

}  // namespace tributary::store
