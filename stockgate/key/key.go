// Package key builds the Redis keys of a SKU out of the names that a shop has given them.
//
// It promises that two SKUs never share a key that Tells them apart, as long as each Fits, and that keys which OneSlot
// accepts lie together in a cluster, whatever SKU they are of. It does not know what stands in a key.
package key
