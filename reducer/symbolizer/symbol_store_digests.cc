#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "reducer/symbolizer/symbol_store_impl.h"

namespace tributary {

SymbolAsk SymbolStore::WhatToAsk(const ExecutableId& id, SymbolAsker asker, const SymbolWitness& node,
                                 bool sends_digests) {
  if (!id.known() || !impl_->demand.MayAsk(id)) return SymbolAsk::kNothing;
  if (impl_->votes.IsOfMajority(id, node.node_id)) {
    return impl_->demand.Ask(id, asker) ? SymbolAsk::kTable : SymbolAsk::kNothing;
  }
  if (const auto row = impl_->files.Find(id); row.ok()) {
    if (!sends_digests || !impl_->options.ask_digests || row->origin() != SymbolOrigin::kNode) {
      return SymbolAsk::kNothing;
    }
    const TableNotes notes = row->notes();
    const auto is_same = [&](const SymbolWitness& known) { return known.IsSameAs(node); };
    if (std::ranges::any_of(notes.nodes, is_same)) return SymbolAsk::kNothing;
    const SymbolVotes::Question question = impl_->votes.Ask(id, node);
    if (question == SymbolVotes::Question::kTooMany) impl_->digests_deferred.Add();
    if (question != SymbolVotes::Question::kAsk) return SymbolAsk::kNothing;
    impl_->digests_asked.Add();
    return SymbolAsk::kDigest;
  }
  if (!impl_->demand.Ask(id, asker)) return SymbolAsk::kNothing;  // another thread was first
  if (!impl_->files.Find(id).ok()) return SymbolAsk::kTable;
  impl_->demand.Answered(id);  // it arrived between the two checks
  return SymbolAsk::kNothing;
}

void SymbolStore::PutDigest(const ExecutableId& id, const SymbolSender& sender,
                            const absl::StatusOr<SymbolDigest>& digest) {
  if (!digest.ok()) {
    impl_->digests_unavailable.Add();
    return impl_->votes.TakeNone(id, sender.node_id);
  }
  std::lock_guard write_lock(impl_->write_mutex);
  absl::StatusOr<SymbolFiles::Row> row = impl_->files.Find(id);
  // A better table may have come meanwhile.
  if (!row.ok() || row->origin() != SymbolOrigin::kNode) return impl_->votes.Forget(id);
  const absl::Status counted = impl_->Count(*std::move(row), sender, *digest);
  if (counted.ok()) return;
  LogWarning("cannot compare a symbol table with that of another node executable={} error=\"{}\"", id.ToString(),
             Message(counted));
}

// Adds a node that has the same table to the notes of `row`. Returns true if `row` has changed.
bool SymbolStore::Impl::Confirm(SymbolFiles::Row& row, const SymbolSender& by) {
  TableNotes notes = row.notes();
  if (row.origin() != SymbolOrigin::kNode || by.node_id.empty()) return false;
  bool two = false;
  for (const SymbolWitness& known : notes.nodes) {
    if (known.IsSameAs(by.witness())) return false;
    two = two || known.IsIndependentOf(by.witness());
  }
  notes.nodes.push_back(by.witness());
  if (notes.version.empty()) notes.version = by.version;
  if (two) row.header.origin = static_cast<uint8_t>(SymbolOrigin::kNodes);
  row.header.notes = EncodeTableNotes(notes);
  return true;
}

// Reports that a node has another table, and adds the node to the notes of `row`.
absl::Status SymbolStore::Impl::Dispute(SymbolFiles::Row& row, const SymbolSender& by,
                                        const SymbolVotes::Outcome& outcome) {
  TableNotes notes = row.notes();
  const bool outvoted = outcome.verdict == SymbolVotes::Verdict::kOutvoted;
  const std::string first = notes.nodes.empty() ? "another node" : notes.nodes.front().node_id;
  const std::string text =
      outvoted
          ? fmt::format("node {} and another one have the same symbol table, which replaces that of {}", by.node_id,
                        first)
          : fmt::format("two files have this build-id, or a node is hostile: the symbol tables of {} and {} differ",
                        first, by.node_id);
  if (options.notices != nullptr) options.notices->Add(row.header.id, text);
  if (outvoted && outcome.outvoted.empty()) {  // other collectors or sources of names: no file is disputed
    digests_no_verdict.Add();
    return absl::OkStatus();
  }
  digests_conflict.Add();
  if (std::ranges::count(notes.disputed_by, by.node_id) == 0) notes.disputed_by.push_back(by.node_id);
  row.header.notes = EncodeTableNotes(notes);
  row.header.contested = true;
  return Annotate(row);
}

// Counts the digest of a node for or against the stored table of another node. The caller must hold write_mutex.
absl::Status SymbolStore::Impl::Count(SymbolFiles::Row row, const SymbolSender& by, const SymbolDigest& digest) {
  using Verdict = SymbolVotes::Verdict;
  ASSIGN_OR_RETURN(const SymbolDigest stored, DigestOfStored(row));
  const TableNotes notes = row.notes();
  const ExecutableId& id = row.header.id;
  const SymbolVotes::Outcome outcome =
      votes.Take(id, {stored, notes.version, notes.nodes}, {by.witness(), by.version, digest});
  for (const std::string& node : outcome.outvoted) {
    if (options.refusals != nullptr) options.refusals->Add(node, "symbol_conflict");
  }
  switch (outcome.verdict) {
    case Verdict::kUnasked:
      return absl::OkStatus();
    case Verdict::kAgreed:
    case Verdict::kOnlyOne:
      if (outcome.verdict == Verdict::kAgreed) digests_agreed.Add();
      if (outcome.verdict == Verdict::kAgreed) votes.Forget(id);
      return Confirm(row, by) ? Annotate(row) : absl::OkStatus();
    case Verdict::kNoVerdict:
      digests_no_verdict.Add();
      return absl::OkStatus();
    case Verdict::kConflict:
    case Verdict::kOutvoted:
      break;
  }
  demand.Reconsider(id);  // another node must decide, or send the table of the majority
  return Dispute(row, by, outcome);
}

// Sets the origin and the notes of a table that a node has sent. If an independent node has given the digest of this
// table, its origin is kNodes.
SymbolOrigin SymbolStore::Impl::TakeMajority(const SymbolSender& sender, const SymbolDigest& digest,
                                             TableFile& header) {
  TableNotes notes{.nodes = {}, .disputed_by = {}, .version = sender.version, .sha256 = digest.sha256};
  if (!sender.node_id.empty()) notes.nodes.push_back(sender.witness());
  const bool of_majority = votes.IsOfMajority(header.id, sender.node_id);
  SymbolOrigin origin = SymbolOrigin::kNode;
  for (const SymbolWitness& node : votes.Majority(header.id, digest)) {
    if (of_majority && node.IsIndependentOf(sender.witness())) notes.nodes.push_back(node);
  }
  if (notes.nodes.size() >= 2) {
    origin = SymbolOrigin::kNodes;
  } else if (of_majority) {
    votes.Discard(header.id, sender.node_id);  // it has sent another table than it said
  }
  header.origin = static_cast<uint8_t>(origin);
  header.notes = EncodeTableNotes(notes);
  return origin;
}

// Earlier releases have not stored the digest of their tables.
absl::StatusOr<SymbolDigest> SymbolStore::Impl::DigestOfStored(SymbolFiles::Row& row) const {
  TableNotes notes = row.notes();
  if (notes.sha256) return SymbolDigest{.sha256 = *notes.sha256, .source = row.header.source};
  ASSIGN_OR_RETURN(const std::string encoded, files.ReadEncoded(row.header.id));
  notes.sha256 = Sha256(encoded);
  row.header.notes = EncodeTableNotes(notes);
  return SymbolDigest{.sha256 = *notes.sha256, .source = row.header.source};
}

// Returns `notes` of a table that two nodes have, with the nodes whose table it replaces.
std::string SymbolStore::Impl::Outvoting(const std::string& notes, const TableNotes& outvoted) {
  TableNotes with = ParseTableNotes(notes);
  if (!outvoted.disputed_by.empty()) with.disputed_by = outvoted.node_ids();
  return EncodeTableNotes(with);
}

}  // namespace tributary
