#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "intake/codec/batch_encoder.h"
#include "intake/spool/spool.h"
#include "profile/batch.h"
#include "profile/dictionary.h"

namespace tributary::intake {

// Turns batches into the records of one segment. Interns the definitions that their samples use, and no others, into
// the segment's own dictionary, so that the segment can be read without any other data. Known ids of a batch's
// dictionary are looked up in an array: a sample of a known stack costs a few loads.
class SegmentWriter {
 public:
  explicit SegmentWriter(SegmentId segment, DictionaryLimits limits = {})
      : segment_(segment), dictionary_(std::make_shared<Dictionary>(limits)), encoder_(1) {}

  // Returns the next record. Returns nullopt if the definitions of the batch do not fit into the dictionary: this
  // segment is then finished. The caller must write every record to the file before it calls Encode again, because
  // later records use the definitions in this one.
  std::optional<std::string> Encode(const Batch& batch);

 private:
  // The segment's ids by the ids of `source`; 0: not looked at yet, or none.
  struct Memo : Tables<std::vector<uint32_t>> {
    std::weak_ptr<const Dictionary> source;
  };
  void Prepare(const std::shared_ptr<const Dictionary>& source);
  StringRef Map(const Dictionary& from, StringRef ref);
  ExecutableRef Map(const Dictionary& from, ExecutableRef ref);
  FrameRef Map(const Dictionary& from, FrameRef ref);
  NodeRef Map(const Dictionary& from, NodeRef ref);
  ProcessRef Map(const Dictionary& from, ProcessRef ref);
  ThreadRef Map(const Dictionary& from, ThreadRef ref);

  const SegmentId segment_;
  uint32_t batches_ = 0;
  std::shared_ptr<Dictionary> dictionary_;
  BatchEncoder encoder_;
  Memo memo_;
  std::vector<NodeRef> path_;  // of the current stack, leaf first
};

}  // namespace tributary::intake
