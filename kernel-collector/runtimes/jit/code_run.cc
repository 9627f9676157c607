#include "kernel-collector/runtimes/jit/code_run.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>

#include "base/utf8.h"

namespace tributary {

size_t CodeRun::bytes() const {
  return text_.size() + (pieces_.size() + past_.size()) * sizeof(Piece) + codes_.size() * sizeof(Code) +
         files_.size() * sizeof(Text) + lines_.size() * sizeof(Line);
}

const CodeRun::Piece* CodeRun::PieceAt(uint64_t address) const {
  const auto it = std::upper_bound(pieces_.begin(), pieces_.end(), address,
                                   [](uint64_t a, const Piece& piece) { return a < piece.end; });
  return it != pieces_.end() && it->start <= address ? &*it : nullptr;
}

const CodeRun::Piece* CodeRun::PastAt(uint64_t address, MonotonicNs time) const {
  auto it = std::upper_bound(past_.begin(), past_.end(), address,
                             [](uint64_t a, const Piece& piece) { return a < piece.start; });
  while (it != past_.begin() && address < std::prev(it)->end) {
    --it;
    if (it->since <= time) return &*it;
  }
  return nullptr;
}

CodeName CodeRun::NameAt(uint64_t address, const Code& code) const {
  CodeName name{View(code.name), View(files_[code.file]), code.line};
  const auto begin = lines_.begin() + code.lines_begin, end = lines_.begin() + code.lines_end;
  const auto row = std::upper_bound(begin, end, address - code.start,
                                    [](uint64_t offset, const Line& line) { return offset < line.offset; });
  if (row == begin) return name;
  name.line = std::prev(row)->line;
  name.file = View(files_[std::prev(row)->file]);
  return name;
}

CodeRun::Found CodeRun::Find(uint64_t address, MonotonicNs time, CodeName* name) const {
  const Piece* now = PieceAt(address);
  const Piece* piece = now != nullptr && time < now->since ? PastAt(address, time) : now;
  if (piece == nullptr && now == nullptr) return Found::kNothing;
  if ((piece != nullptr ? piece : now)->code == kNoCode) return piece != nullptr ? Found::kGone : Found::kNothing;
  *name = NameAt(address, codes_[(piece != nullptr ? piece : now)->code]);
  return piece != nullptr ? Found::kName : Found::kLaterName;
}

CodeRunBuilder::CodeRunBuilder() : run_(std::make_shared<CodeRun>()) { run_->files_.emplace_back(); }

CodeRun::Text CodeRunBuilder::AddText(std::string_view text, size_t bytes_max) {
  text = CutUtf8(text.substr(0, text.find('\0')), bytes_max);
  const auto at = static_cast<uint32_t>(run_->text_.size());
  if (IsUtf8(text)) {
    run_->text_.append(text);
  } else {
    run_->text_.append(CutUtf8(ToUtf8(text), bytes_max));
  }
  return {at, static_cast<uint32_t>(run_->text_.size()) - at};
}

uint32_t CodeRunBuilder::AddFile(std::string_view file) {
  file = CutUtf8(file, kFileBytesMax);  // also bounds the key
  if (file.empty()) return 0;
  const auto [it, is_new] = file_numbers_.try_emplace(std::string(file), static_cast<uint32_t>(run_->files_.size()));
  if (is_new) run_->files_.push_back(AddText(file, kFileBytesMax));
  return it->second;
}

void CodeRunBuilder::Add(const NewCode& code) {
  const auto number = static_cast<uint32_t>(run_->codes_.size());
  CodeRun::Code added{.start = code.start, .name = AddText(code.name, kNameBytesMax), .line = code.line};
  added.file = AddFile(code.file);
  added.lines_begin = static_cast<uint32_t>(run_->lines_.size());
  std::string_view file;
  uint32_t file_number = 0;
  for (const NewCode::Line& line : code.lines) {
    if (line.address < code.start || line.address >= code.end || line.address - code.start > UINT32_MAX) continue;
    // Most rows refer to the same text as the row before, which may be long.
    if (line.file.data() != file.data() || line.file.size() != file.size()) {
      file = line.file;
      file_number = AddFile(file);
    }
    run_->lines_.push_back({static_cast<uint32_t>(line.address - code.start), line.line, file_number});
  }
  added.lines_end = static_cast<uint32_t>(run_->lines_.size());
  std::stable_sort(run_->lines_.begin() + added.lines_begin, run_->lines_.end(),
                   [](const CodeRun::Line& a, const CodeRun::Line& b) { return a.offset < b.offset; });
  run_->codes_.push_back(added);
  entries_.push_back({code.start, code.end, code.since, number});
  last_at_[code.start] = number;
}

void CodeRunBuilder::AddGone(uint64_t start, uint64_t end, MonotonicNs since) {
  entries_.push_back({start, end, since, CodeRun::kNoCode});
  last_at_.erase(start);
}

class CodeRunBuilder::Copier {
 public:
  Copier(const CodeRun& from, CodeRunBuilder& to)
      : from_(from), to_(to), codes_(from.codes_.size(), kNone), files_(from.files_.size(), kNone) {}

  // Returns the number of the function in the builder.
  uint32_t Code(uint32_t number) {
    if (codes_[number] != kNone) return codes_[number];
    CodeRun& run = *to_.run_;
    CodeRun::Code code = from_.codes_[number];
    code.name = to_.AddText(from_.View(code.name), kNameBytesMax);
    code.file = File(code.file);
    const uint32_t begin = code.lines_begin, end = code.lines_end;
    code.lines_begin = static_cast<uint32_t>(run.lines_.size());
    for (uint32_t i = begin; i < end; ++i) {
      CodeRun::Line line = from_.lines_[i];
      line.file = File(line.file);
      run.lines_.push_back(line);
    }
    code.lines_end = static_cast<uint32_t>(run.lines_.size());
    codes_[number] = static_cast<uint32_t>(run.codes_.size());
    run.codes_.push_back(code);
    return codes_[number];
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t File(uint32_t number) {
    if (files_[number] == kNone) files_[number] = to_.AddFile(from_.View(from_.files_[number]));
    return files_[number];
  }

  const CodeRun& from_;
  CodeRunBuilder& to_;
  std::vector<uint32_t> codes_, files_;  // by number in the run: number in the builder
};

void CodeRunBuilder::Add(const CodeRun& run) {
  Copier copier(run, *this);
  for (const CodeRun::Piece& piece : run.pieces_) {
    if (piece.code == CodeRun::kNoCode) {
      AddGone(piece.start, piece.end, piece.since);
      continue;
    }
    const uint32_t number = copier.Code(piece.code);
    entries_.push_back({piece.start, piece.end, piece.since, number});
    last_at_[piece.start] = number;
  }
}

bool CodeRunBuilder::FindLast(uint64_t start, CodeName* name) const {
  const auto it = last_at_.find(start);
  if (it == last_at_.end()) return false;
  *name = run_->NameAt(start, run_->codes_[it->second]);
  return true;
}

// Cuts the functions into pieces that do not overlap. Walks all functions by their start. `active` contains the
// functions at the current address, the last one of the file on top, and perhaps functions that have ended.
void CodeRunBuilder::Sweep(const Options& options) {
  const auto is_before = [&](size_t a, size_t b) {
    return entries_[a].start != entries_[b].start ? entries_[a].start < entries_[b].start : a < b;
  };
  std::vector<size_t> by_start(entries_.size());
  std::iota(by_start.begin(), by_start.end(), size_t{0});
  std::sort(by_start.begin(), by_start.end(), is_before);
  std::vector<bool> is_past(entries_.size());
  std::priority_queue<size_t> active;
  std::vector<CodeRun::Piece>& pieces = run_->pieces_;
  uint64_t at = 0;
  for (size_t next = 0; next < by_start.size() || !active.empty();) {
    const auto pop_ended = [&] {
      while (!active.empty() && entries_[active.top()].end <= at) active.pop();
    };
    if (active.empty()) at = entries_[by_start[next]].start;
    for (; next < by_start.size() && entries_[by_start[next]].start <= at; ++next) {
      const size_t entry = by_start[next];
      pop_ended();
      if (!active.empty()) {
        const auto [covered, covers] = std::minmax(entry, active.top());
        if (entries_[covers].since >= options.past_from) is_past[covered] = true;
      }
      active.push(entry);
    }
    pop_ended();
    if (active.empty()) continue;
    const CodeRun::Piece& top = entries_[active.top()];
    const uint64_t end = next < by_start.size() ? std::min(top.end, entries_[by_start[next]].start) : top.end;
    if (!pieces.empty() && pieces.back().end == at && pieces.back().code == top.code &&
        pieces.back().since == top.since) {
      pieces.back().end = end;
    } else {
      pieces.push_back({at, end, top.since, top.code});
    }
    at = end;
  }
  AddPast(is_past);
}

// Cuts the last covered functions at each start and end of one of them. So a search looks at kPastDepthMax pieces, for
// any input.
void CodeRunBuilder::AddPast(const std::vector<bool>& is_past) {
  struct Edge {
    uint64_t at = 0;
    size_t entry = 0;
    bool is_start = false;
  };
  std::vector<Edge> edges;
  for (size_t i = entries_.size(); i-- > 0 && edges.size() < 2 * kPastMax;) {
    if (!is_past[i]) continue;
    edges.push_back({entries_[i].start, i, true});
    edges.push_back({entries_[i].end, i, false});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::set<size_t> active;
  for (auto edge = edges.begin(); edge != edges.end();) {
    const uint64_t at = edge->at;
    for (; edge != edges.end() && edge->at == at; ++edge) {
      if (edge->is_start) {
        active.insert(edge->entry);
      } else {
        active.erase(edge->entry);
      }
    }
    const size_t depth = std::min(active.size(), kPastDepthMax);
    if (run_->past_.size() + depth > kPastPiecesMax) return;
    for (auto it = std::prev(active.end(), static_cast<ptrdiff_t>(depth)); it != active.end(); ++it) {
      run_->past_.push_back({at, edge->at, entries_[*it].since, entries_[*it].code});
    }
  }
}

// Drops the functions of which no piece is left, and their texts.
void CodeRunBuilder::DropUnused() {
  std::vector<bool> is_used(run_->codes_.size());
  const auto use = [&](const CodeRun::Piece& piece) {
    if (piece.code != CodeRun::kNoCode) is_used[piece.code] = true;
  };
  std::for_each(run_->pieces_.begin(), run_->pieces_.end(), use);
  std::for_each(run_->past_.begin(), run_->past_.end(), use);
  if (std::find(is_used.begin(), is_used.end(), false) == is_used.end()) return;
  CodeRunBuilder kept;
  Copier copier(*run_, kept);
  for (std::vector<CodeRun::Piece>* all : {&run_->pieces_, &run_->past_}) {
    for (CodeRun::Piece& piece : *all) {
      if (piece.code != CodeRun::kNoCode) piece.code = copier.Code(piece.code);
    }
  }
  kept.run_->pieces_ = std::move(run_->pieces_);
  kept.run_->past_ = std::move(run_->past_);
  run_ = std::move(kept.run_);
}

CodeRunPtr CodeRunBuilder::Build(const Options& options) {
  for (CodeRun::Piece& entry : entries_) {
    if (entry.since.value == 0) entry.since = options.lines_are_from;
    if (options.by_time) entry.since = std::min(entry.since, options.read_at);
  }
  if (options.by_time) {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const CodeRun::Piece& a, const CodeRun::Piece& b) { return a.since < b.since; });
  }
  Sweep(options);
  DropUnused();
  run_->maybe_from_ = options.maybe_from;
  run_->read_at_ = options.read_at;
  run_->text_.shrink_to_fit();
  run_->pieces_.shrink_to_fit();
  run_->codes_.shrink_to_fit();
  run_->lines_.shrink_to_fit();
  run_->share_ = NamesMemoryShare(options.memory, run_->bytes());
  CodeRunPtr built = std::move(run_);
  *this = CodeRunBuilder();
  return built;
}

}  // namespace tributary
