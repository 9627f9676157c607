#include "reducer/sqlite/trie_pieces.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "base/varint.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/row_ids.h"
#include "reducer/store/trie.h"

namespace tributary::store {
namespace {

// Reads only the counts of a piece. AppendTriePiece checks the rest.
bool CountsOf(std::string_view raw_piece, TrieEnds* counts) {
  VarintReader reader(raw_piece);
  std::string_view version;
  return reader.ReadBytes(1, &version) && reader.Read(&counts->frames) && reader.Read(&counts->nodes);
}

bool Believable(const TrieEnds& from, const TrieEnds& to) {
  return to.nodes >= from.nodes && to.frames >= from.frames && to.nodes - from.nodes <= TriePieces::kGapMax &&
         to.frames - from.frames <= TriePieces::kGapMax;
}

absl::Status WrongNumbers() {
  return absl::DataLossError("the numbers of its nodes do not continue those of the piece before");
}

}  // namespace

void AppendPlaceholders(const TrieEnds& before, const TrieEnds& to, StringId name, Trie* trie) {
  const size_t frames = to.frames - before.frames, nodes = to.nodes - before.nodes;
  // Without a frame of their own, the placeholders have frame 0, which has no name.
  const uint64_t frame = trie->frame_rows.size() < frames ? to.frames - 1 : 0;
  if (trie->frame_rows.size() < frames) trie->frame_rows.resize(frames, FrameRow{.name = name});
  if (trie->parents.size() >= nodes) return;
  trie->parents.resize(nodes, NodeNo{0});
  trie->frames.resize(nodes, static_cast<uint32_t>(frame));
}

absl::Status AppendWholePiece(std::string_view raw_piece, const TrieEnds& before, Trie* trie) {
  const size_t nodes = trie->parents.size(), frames = trie->frame_rows.size();
  TrieTail tail{.first_node = before.nodes, .first_frame = before.frames, .added = std::move(*trie)};
  const absl::Status appended = AppendTriePiece(raw_piece, &tail);
  *trie = std::move(tail.added);
  if (appended.ok()) return appended;
  trie->parents.resize(nodes);
  trie->frames.resize(nodes);
  trie->frame_rows.resize(frames);
  return appended;
}

TrieEnds TrieAppender::ends() const {
  return {before_.nodes + trie_->parents.size(), before_.frames + trie_->frame_rows.size()};
}

absl::Status TrieCounter::Append(std::string_view raw_piece) {
  Trie piece;
  RETURN_IF_ERROR(AppendWholePiece(raw_piece, ends_, &piece));
  ends_.nodes += piece.parents.size();
  ends_.frames += piece.frame_rows.size();
  return absl::OkStatus();
}

// A run ends when the next intact piece says where it begins, or at the end of the day.
struct TriePieces::Run {
  std::vector<DamagedRun>* done;
  DamagedRun open;  // first == 0: there is none
  std::optional<TrieEnds> own_ends;

  bool is_open() const { return open.first != 0; }
  void Add(int64_t id, const absl::Status& why, std::optional<TrieEnds> ends) {
    if (!is_open()) {
      open.first = id;
      open.reason = Message(why);
    }
    open.last = id;
    own_ends = ends;
  }
  void EndAt(std::optional<TrieEnds> ends, bool last_of_day) {
    open.ends = ends;
    open.last_of_day = last_of_day;
    done->push_back(std::exchange(open, {}));
  }
};

absl::StatusOr<TriePieces> TriePieces::Prepare(Database& database) {
  TriePieces pieces;
  ASSIGN_OR_RETURN(pieces.gaps_, database.Prepare("SELECT first_piece, last_piece, nodes_end, frames_end, name FROM "
                                                  "trie_gap WHERE day = ? ORDER BY first_piece"));
  ASSIGN_OR_RETURN(pieces.newest_gap_, database.Prepare("SELECT ifnull(max(id), 0) FROM trie_gap WHERE day = ?"));
  ASSIGN_OR_RETURN(pieces.list_, database.Prepare("SELECT id FROM trie_chunk WHERE day = ? AND id > ? ORDER BY id"));
  ASSIGN_OR_RETURN(pieces.read_,
                   database.Prepare("SELECT raw_bytes, columns, nodes_end, frames_end FROM trie_chunk WHERE id = ?"));
  return pieces;
}

absl::StatusOr<int64_t> TriePieces::NewestGap(Day day) {
  ASSIGN_OR_RETURN([[maybe_unused]] const bool row, newest_gap_.Bind(day.value).Step());
  const int64_t newest = newest_gap_.Int(0);
  newest_gap_.Reset();
  return newest;
}

absl::StatusOr<std::vector<TriePieces::Gap>> TriePieces::GapsOf(Day day) {
  std::vector<Gap> gaps;
  gaps_.Bind(day.value);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, gaps_.Step());
    if (!row) return gaps;
    gaps.push_back({gaps_.Int(0),
                    gaps_.Int(1),
                    {static_cast<uint64_t>(gaps_.Int(2)), static_cast<uint64_t>(gaps_.Int(3))},
                    StringId{ReadRowId(gaps_.Int(4)).value_or(0)}});
  }
}

absl::Status TriePieces::Read(Day day, int64_t after, TrieSink& sink, std::vector<DamagedRun>* damage) {
  ASSIGN_OR_RETURN(const std::vector<Gap> gaps, GapsOf(day));
  std::vector<int64_t> ids;
  list_.Bind(day.value, after);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) break;
    ids.push_back(list_.Int(0));
  }
  Run run{.done = damage, .open = {}, .own_ends = {}};
  auto gap = gaps.begin();
  int64_t ignored_to = after;
  for (; gap != gaps.end() && gap->first <= after; ++gap) ignored_to = gap->last;  // the caller's trie has these gaps
  const auto fill = [&] {
    if (run.is_open()) run.EndAt(sink.ends(), /*last_of_day=*/false);
    if (Believable(sink.ends(), gap->ends)) sink.Fill(gap->ends, gap->name);
    ++gap;
  };
  for (int64_t id : ids) {
    while (gap != gaps.end() && gap->last < id) fill();
    if (id <= ignored_to || (gap != gaps.end() && gap->first <= id)) continue;
    RETURN_IF_ERROR(ReadPiece(id, sink, run));
  }
  while (gap != gaps.end()) fill();
  if (!run.is_open()) return absl::OkStatus();
  if (run.own_ends && Believable(sink.ends(), *run.own_ends)) {
    sink.Fill(*run.own_ends, {});
    run.EndAt(run.own_ends, /*last_of_day=*/true);
  } else {
    run.EndAt(std::nullopt, /*last_of_day=*/true);
  }
  return absl::OkStatus();
}

absl::Status TriePieces::ReadPiece(int64_t id, TrieSink& sink, Run& run) {
  const absl::StatusOr<bool> row = read_.Bind(id).Step();
  if (absl::IsDataLoss(row.status())) {
    run.Add(id, row.status(), std::nullopt);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(row.status());
  if (!*row) return absl::OkStatus();  // it cannot vanish within a transaction
  const absl::Cleanup reset = [this] { read_.Reset(); };
  std::optional<TrieEnds> ends;
  if (!read_.IsNull(2) && !read_.IsNull(3)) {
    ends = {static_cast<uint64_t>(read_.Int(2)), static_cast<uint64_t>(read_.Int(3))};
  }
  const absl::StatusOr<std::string> raw = UnpackColumns(read_.Bytes(1), read_.Int(0));
  TrieEnds counts;
  if (!raw.ok() || !CountsOf(*raw, &counts)) {
    run.Add(id, read_.InFile(raw.ok() ? absl::DataLossError("the piece is too short") : raw.status()), ends);
    return absl::OkStatus();
  }
  if (ends) {
    const TrieEnds begin{ends->nodes - counts.nodes, ends->frames - counts.frames};
    const bool follows = begin == sink.ends();
    if (counts.nodes > ends->nodes || counts.frames > ends->frames ||
        (!follows && !(run.is_open() && Believable(sink.ends(), begin)))) {
      run.Add(id, read_.InFile(WrongNumbers()), std::nullopt);
      return absl::OkStatus();
    }
    if (run.is_open()) {
      sink.Fill(begin, {});
      run.EndAt(begin, /*last_of_day=*/false);
    }
  } else if (run.is_open()) {
    run.Add(id, WrongNumbers(), std::nullopt);
    return absl::OkStatus();
  }
  const absl::Status appended = sink.Append(*raw);
  if (!appended.ok()) run.Add(id, read_.InFile(appended), ends);
  return absl::OkStatus();
}

}  // namespace tributary::store
