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

// Encodes batches as records of one segment. Adds to the segment's own dictionary only the definitions that their
// samples and events use. So the segment can be read without any other data. If earlier batches used an id of the
// batch's dictionary, an array maps the id to an id of the segment's dictionary. So a sample with a known stack costs
// only a few memory reads.
class SegmentWriter {
 public:
  explicit SegmentWriter(SegmentId segment, DictionaryLimits limits = {})
      : segment_(segment), dictionary_(std::make_shared<Dictionary>(limits)), encoder_(1) {}

  // Returns the next record. Returns nullopt if the definitions of the batch do not fit into the segment's dictionary.
  // The caller must then begin another segment. The caller must write each record to the file before it calls Encode
  // again, because later records use the definitions in earlier records.
  std::optional<std::string> Encode(const Batch& batch);

 private:
  // Maps ids of the dictionary `source` to ids of the segment's dictionary. 0: not mapped yet, or no definition.
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
  std::vector<NodeRef> path_;  // the nodes of the current stack, leaf first
};

}  // namespace tributary::intake
