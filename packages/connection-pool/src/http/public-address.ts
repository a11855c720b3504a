import { BlockList, isIP } from 'node:net';

/** Whether a socket may go to `address` (IPv4 or IPv6), which is where `host` is. */
export type AllowAddress = (address: string, host: string) => boolean;

/** What is not of the public internet, or leads elsewhere. (IANA special-purpose address registries) */
const SPECIAL = {
  ipv4: `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3`,
  // Everything but 2000::/3, and of that what embeds an IPv4 address or is for documentation.
  ipv6: '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16',
} as const;

/**
 * Whether an address is one of the public internet: not of this machine, of a private network, of a link (where clouds
 * keep their metadata). For `allowAddress` of a pool whose servers are named by somebody who is not trusted.
 */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 0) return false;
  const family = version === 6 ? 'ipv6' : 'ipv4';
  const special = new BlockList();
  for (const range of SPECIAL[family].split(/\s+/)) {
    const [net = '', prefix] = range.split('/');
    special.addSubnet(net, Number(prefix), family);
  }
  return !special.check(address, family);
}
