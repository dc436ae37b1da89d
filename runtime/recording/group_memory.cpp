#include "recording/group_memory.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {

GroupMemory::GroupMemory(const LoadedModel& model, uint32_t lane) : lane_(lane) {
  const ModelSplit* split = model.split();
  if (split == nullptr) {
    members_.push_back(std::make_unique<PassMemory>(model.device()));
    return;
  }
  link_ = split->group->link;
  for (const auto& part : split->parts) {
    members_.push_back(part ? std::make_unique<PassMemory>(part->device()) : nullptr);
  }
}

void GroupMemory::share(std::map<std::string, uint64_t> tensors) {
  shared_ = std::move(tensors);
}

HostAccess GroupMemory::with_shared(HostAccess access) const {
  for (const auto& [name, bytes] : shared_) {
    access.writes.push_back(name);
    access.reads.push_back(name);
  }
  return access;
}

Status GroupMemory::write(const std::string& name, uint64_t word, std::span<const uint32_t> values,
                          PassMemory::InFlight in_flight) {
  if (members_.size() == 1) return only().write(name, word, values, in_flight);
  for (const auto& memory : members_) {
    if (memory && memory->has(name)) VKF_CHECK(memory->write(name, word, values, in_flight));
  }
  return {};
}

size_t GroupMemory::owner_of(const std::string& name) const {
  const auto found = owners_.find(name);
  if (found != owners_.end()) return found->second;
  for (size_t m = 0; m < members_.size(); ++m) {
    if (members_[m] && members_[m]->has(name)) return m;
  }
  return 0;
}

Status GroupMemory::bring(const std::vector<std::string>& names, size_t to) {
  for (const std::string& name : names) {
    const auto stale = stale_.find(name);
    if (stale == stale_.end() || stale->second.erase(to) == 0) continue;
    const size_t from = owners_.at(name);
    PassMemory* source = members_[from].get();
    PassMemory* target = members_[to].get();
    if (source == nullptr && target == nullptr) continue;
    const uint64_t bytes = shared_.at(name);
    std::vector<uint32_t> words((bytes + 3) / 4);
    const std::span<std::byte> values = std::as_writable_bytes(std::span(words)).first(bytes);
    if (source != nullptr) {
      VKF_CHECK(source->wait());
      VKF_CHECK(source->read({name, 0, bytes}, values));
      if (target == nullptr) VKF_CHECK(link_->send(to, lane_, values));
    } else {
      VKF_CHECK(link_->receive(from, lane_, values));
    }
    if (target != nullptr && target->has(name)) VKF_CHECK(target->write(name, 0, words));
  }
  return {};
}

Status GroupMemory::submit(size_t at, std::span<const RecordingRange> ranges,
                           const std::vector<std::string>& written,
                           std::span<const TensorPart> reads) {
  PassMemory* memory = members_[at].get();
  if (members_.size() == 1) return memory->submit(ranges, reads);
  std::vector<TensorPart> parts;
  for (const std::string& name : written) {
    owners_[name] = at;
    const auto shared = shared_.find(name);
    if (shared == shared_.end()) continue;
    std::set<size_t>& stale = stale_[name];
    for (size_t m = 0; m < members_.size(); ++m) {
      if (m != at) stale.insert(m);
    }
    stale.erase(at);
    if (memory && memory->has(name)) parts.push_back({name, 0, shared->second});
  }
  if (memory == nullptr) return {};
  for (const TensorPart& part : reads) {
    const bool own = std::find(written.begin(), written.end(), part.name) != written.end();
    if (own && memory->has(part.name) && !shared(part.name)) parts.push_back(part);
  }
  return memory->submit(ranges, parts);
}

Status GroupMemory::send() {
  for (const auto& memory : members_) {
    if (memory) VKF_CHECK(memory->send());
  }
  return {};
}

Status GroupMemory::wait() {
  for (const auto& memory : members_) {
    if (memory) VKF_CHECK(memory->wait());
  }
  return {};
}

Status GroupMemory::read(const TensorPart& from, std::span<std::byte> values) const {
  if (members_.size() == 1) return only().read(from, values);
  const size_t owner = owner_of(from.name);
  if (members_[owner]) VKF_CHECK(members_[owner]->read(from, values));
  return link_ ? link_->broadcast(owner, lane_, values) : Status{};
}

int64_t GroupMemory::submits() const {
  int64_t submits = 0;
  for (const auto& memory : members_) submits += memory ? memory->submits() : 0;
  return submits;
}

}  // namespace vkformer
