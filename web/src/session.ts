import { computed, effect, signal } from "@preact/signals";
import { api, type Listed, type Me } from "./api";

/** Who asks, once it is known. `null` where the server is too old to say. */
export const me = signal<Me | null>(null);
export const databases = signal<Listed[]>([]);
/** The database that is asked; kept, so that the next visit begins where this one ended. */
export const database = signal<string>(localStorage.getItem("database") ?? "");
/** Someone has to sign in before anything else can be seen. */
export const signInNeeded = signal(false);
/** The server does not answer. */
export const away = signal(false);
export const ready = signal(false);

export const dialect = computed(() => databases.value.find((one) => one.name === database.value)?.dialect ?? "");
/** Where nobody signs in, everyone administers. */
export const administers = computed(() => me.value?.administers ?? true);

effect(() => {
  if (database.value) localStorage.setItem("database", database.value);
});

/** Asks what the page needs to know before anything else. */
export async function begin(): Promise<void> {
  try {
    databases.value = await api.databases();
    if (!databases.value.some((one) => one.name === database.value)) database.value = databases.value[0]?.name ?? "";
    const now = await api.me().catch(() => null);
    // What one user asked is not to be seen by the next, who signs in on the same page.
    if (me.value && me.value.user !== now?.user) location.reload();
    me.value = now;
    away.value = false;
    signInNeeded.value = false;
    ready.value = true;
  } catch {
    // `api` has said already that someone must sign in, or that the server is away.
  }
}
