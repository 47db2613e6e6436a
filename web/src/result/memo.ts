import { Component, createElement, type FunctionComponent } from "preact";

/** Memoizes a component: renders again only if a prop changes. */
export function memo<P extends object>(render: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const names = Object.keys(next) as (keyof P)[];
      return names.some((name) => next[name] !== this.props[name as keyof typeof this.props]);
    }
    override render() {
      return createElement(render, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
